/** What to do when the daemon does not answer, above every view until it does. */

import { eventSource, isFleet } from "../app";
import { minute } from "../format";
import { now } from "../state/clock";

/** A restart takes less than this: it is no reason to move the page. */
const PATIENCE_S = 3;

export function Disconnected() {
  const since = eventSource.lostAt.value;
  if (since === null || now.value - since < PATIENCE_S) return null;
  return (
    <div class="problems" role="alert" data-testid="disconnected">
      <p>
        <strong>Disconnected.</strong> The figures are those of {minute(since, now.value)}.{" "}
        {isFleet.value ? (
          "The server does not answer; "
        ) : (
          <>
            Start the daemon with <code>brimline serve --background</code>;{" "}
          </>
        )}
        this page reconnects by itself.
      </p>
    </div>
  );
}
