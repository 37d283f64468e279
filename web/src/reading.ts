/** What a reading means to somebody who looks: its level, its state, how old it is. */

import type { SessionView, ThreadRow } from "./api-types";
import { percent, place, span, tokens, UNKNOWN } from "./format";

export type Level = "unknown" | "low" | "medium" | "high" | "limit";

/** From so many per cent of the window a thread is called medium, and high. */
export const MEDIUM = 50;
export const HIGH = 80;

/** After so many seconds in which nothing was heard a reading is stale. */
export const STALE_AFTER = 3_600;

/** A session that was not heard for so long, or has ended, is no longer live. */
export const LIVE_FOR = 24 * 3_600;

/** What a bar is drawn from. */
export type Fullness = Pick<
  ThreadRow,
  "state" | "sent" | "window" | "percent" | "percent_raw" | "percent_of_limit"
>;

export const LEVEL_WORDS: Record<Level, string> = {
  unknown: "unknown",
  low: "low",
  medium: "medium",
  high: "high",
  limit: "at limit",
};

/** The level by what is shown; the limit, or without one the window's end, makes it "limit". */
export function levelOf(thread: Fullness | undefined): Level {
  if (!thread || thread.percent === null) return "unknown";
  if (thread.percent_of_limit !== null && thread.percent_of_limit >= 100) return "limit";
  if (thread.percent >= 100) return "limit";
  if (thread.percent >= HIGH) return "high";
  return thread.percent >= MEDIUM ? "medium" : "low";
}

/** Whether more was sent than the window is believed to hold. */
export function overshoots(thread: Fullness): boolean {
  return thread.percent_raw !== null && thread.percent_raw > 100;
}

export function mainOf(view: SessionView): ThreadRow | undefined {
  return view.threads.find((thread) => thread.thread === "main") ?? view.threads[0];
}

export function subagentsOf(view: SessionView): ThreadRow[] {
  const main = mainOf(view);
  return view.threads.filter((thread) => thread !== main);
}

/** When anything was last heard of a session. */
export function heardAt(view: SessionView): number {
  return Math.max(view.session.seen_at, ...view.threads.map((thread) => thread.at ?? 0));
}

export function isLive(view: SessionView, now: number): boolean {
  return view.session.ended_at === null && now - heardAt(view) < LIVE_FOR;
}

/** The state as it is shown now: "ended" and "stale" are this surface's to say. */
export function stateOf(view: SessionView, now: number): string {
  if (view.session.ended_at !== null) return "ended";
  if (now - heardAt(view) > STALE_AFTER) return "stale";
  return mainOf(view)?.state ?? "unknown";
}

/** The state in words; measured goes without saying. */
export function stateWords(view: SessionView, now: number): string {
  const state = stateOf(view, now);
  if (state === "stale") return `stale, ${span(now - heardAt(view))}`;
  if (state !== "unknown") return state;
  const main = mainOf(view);
  return main && main.cycle > 0 ? "unknown until the next reply" : "unknown before the first reply";
}

/** Where the limit lies on the window's scale, for a thread other than main; drawn, not told. */
export function limitPlace(thread: ThreadRow): number | null {
  if (thread.limit === null || thread.window === null || thread.window <= 0) return null;
  return (thread.limit / thread.window) * 100;
}

/** A bar in words, for those who do not see it. */
export function barWords(thread: Fullness | undefined, limitAt: number | null): string {
  if (!thread || thread.percent === null) return `Occupancy ${UNKNOWN}`;
  const parts = [
    `${percent(thread.percent)} of the window`,
    `${tokens(thread.sent)} of ${tokens(thread.window)} tokens`,
    LEVEL_WORDS[levelOf(thread)],
    limitAt === null ? "limit unknown" : `limit at ${place(limitAt)}`,
  ];
  if (overshoots(thread)) parts.push(`overshoot: ${percent(thread.percent_raw)}`);
  return parts.join(", ");
}
