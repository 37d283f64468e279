/** Whether what one sees is live. */

import { live } from "../app";
import type { Connection } from "../live";

const WORDS: Record<Connection, string> = {
  connecting: "connecting",
  live: "live",
  lost: "not connected, trying again",
};

export function ConnectionState() {
  const state = live.connection.value;
  return (
    <span class="connection" data-connection={state} data-testid="connection" role="status">
      <span class="dot" aria-hidden="true" />
      {WORDS[state]}
      {live.daemon.value?.demo && <span class="badge">demo</span>}
    </span>
  );
}
