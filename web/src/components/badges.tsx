/** Badges of a session: handoff, unread messages, and why its figures may be missing. */

import type { HandoffStatus } from "../api-types";
import { count, plural } from "../format";

const HANDOFF_TEXTS: Record<Exclude<HandoffStatus["state"], "none">, string> = {
  fresh: "handoff fresh",
  old: "handoff old",
  draft: "handoff draft",
};

export function HandoffBadge({ handoff }: { handoff: HandoffStatus }) {
  if (handoff.state === "none") return null;
  const since = handoff.calls_since;
  const title = since === null ? undefined : `${plural(since, "call")} since it was written`;
  return (
    <span class="badge" data-handoff={handoff.state} data-testid="handoff" title={title}>
      {HANDOFF_TEXTS[handoff.state]}
    </span>
  );
}

export function UnreadBadge({ unread }: { unread: number }) {
  if (unread === 0) return null;
  return (
    <span
      class="badge unread"
      data-testid="unread"
      title="messages from you or another agent, not delivered yet"
    >
      {count(unread)} unread
    </span>
  );
}

export function SessionProblem({ problem }: { problem: string | null }) {
  if (!problem) return null;
  return (
    <p class="over problem" data-testid="problem">
      {problem}
    </p>
  );
}
