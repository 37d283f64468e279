/** Apply the changes that the stream sends. Pure. */

import type { SessionChange, SessionView, ThreadView } from "../api-types";

/** The view after a change. A change sets values, so it may be applied twice. */
export function applyChange(view: SessionView, change: SessionChange): SessionView {
  const { id: _, session, threads, trend, ...rest } = change;
  return {
    ...view,
    ...rest,
    session: { ...view.session, ...session },
    threads: threads === undefined ? view.threads : applyThreads(view.threads, threads),
    trend: trend === undefined ? view.trend : [...view.trend.slice(0, trend.keep), ...trend.add],
  };
}

function applyThreads(
  before: ThreadView[],
  change: NonNullable<SessionChange["threads"]>,
): ThreadView[] {
  if (Array.isArray(change)) return change;
  return before.map((row) => {
    const fields = Object.hasOwn(change, row.thread) ? change[row.thread] : undefined;
    return fields === undefined ? row : { ...row, ...fields };
  });
}
