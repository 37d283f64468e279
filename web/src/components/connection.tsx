/** The state of the connection to the daemon. */

import { eventSource } from "../app";
import type { Connection } from "../event-source";

const TEXTS: Record<Connection, string> = {
  connecting: "connecting",
  live: "live",
  lost: "disconnected, reconnecting",
};

export function ConnectionState() {
  const state = eventSource.connection.value;
  return (
    <span class="connection" data-connection={state} data-testid="connection" role="status">
      <span class="dot" aria-hidden="true" />
      {TEXTS[state]}
      {eventSource.daemon.value?.demo && <span class="badge">demo</span>}
    </span>
  );
}
