/** Small words beside a session: its handoff, its waiting messages. */

import type { HandoffStatus } from "../api-types";
import { count, plural } from "../format";

const HANDOFF_WORDS: Record<HandoffStatus["state"], string> = {
  none: "no handoff",
  fresh: "handoff fresh",
  old: "handoff old",
  draft: "handoff draft",
};

export function HandoffBadge({ handoff }: { handoff: HandoffStatus }) {
  const since = handoff.calls_since;
  const title = since === null ? undefined : `${plural(since, "call")} since it was written`;
  return (
    <span class="badge" data-handoff={handoff.state} data-testid="handoff" title={title}>
      {HANDOFF_WORDS[handoff.state]}
    </span>
  );
}

export function Unread({ unread }: { unread: number }) {
  if (unread === 0) return null;
  return (
    <span class="badge unread" data-testid="unread" title="messages that wait">
      {count(unread)} unread
    </span>
  );
}
