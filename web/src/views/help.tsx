/** How to read a bar, and the keys. */

import { useEffect, useRef } from "preact/hooks";
import { helpOpen, isFleet } from "../app";
import { Bar } from "../components/bar";
import type { Occupancy } from "../reading";

const keys = (fleet: boolean): [string, string][] => [
  ["j / k", "next, previous session"],
  ["Enter", "open the session"],
  ["/", "search; Enter goes to the first match"],
  ["Esc", "clear the search, or go back"],
  fleet ? ["o / f", "sessions, fleet"] : ["o / h", "sessions, history"],
  ["← / →", "on a chart: previous, next point; Enter goes to a call"],
  ["?", "this help"],
];

const EXAMPLE: Occupancy = {
  state: "measured",
  sent: 122_000,
  window: 200_000,
  limit: 168_000,
  percent: 61,
  percent_raw: 61,
  levels: [50, 65],
  fullness: "medium",
  pending_level: null,
};

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = helpOpen.value;
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  const close = () => {
    helpOpen.value = false;
  };
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help" onClose={close} data-testid="help">
      <h2 id="help">How to read a bar</h2>
      <div class="help-bar" aria-hidden="true">
        <Bar thread={EXAMPLE} limitAt={84} />
      </div>
      <p>
        The bar is as long as the context window. The thick red mark is the limit, at which the
        client compacts; the thin marks are your levels. Below the first level a session is low,
        from the first level medium, from the last level high. A diamond marks a level whose message
        waits for the agent.
      </p>
      <h2>Keys</h2>
      <dl>
        {keys(isFleet.value).map(([key, words]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={close}>
        Close
      </button>
    </dialog>
  );
}
