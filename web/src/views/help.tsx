/** How to read a bar, and the keys. */

import { useEffect, useRef } from "preact/hooks";
import { helpOpen } from "../app";
import { Bar } from "../parts/bar";
import { type Fullness, HIGH, MEDIUM } from "../reading";

const KEYS: [string, string][] = [
  ["j / k", "next, previous session"],
  ["Enter", "open it"],
  ["/", "search; Enter goes to the first that fits"],
  ["Esc", "clear the search, or go back"],
  ["o / h", "sessions, history"],
  ["← / →", "on the timeline: from call to call"],
  ["?", "these keys"],
];

const EXAMPLE: Fullness = {
  state: "measured",
  sent: 122_000,
  window: 200_000,
  percent: 61,
  percent_raw: 61,
  percent_of_limit: 73,
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
        <Bar thread={EXAMPLE} limitAt={84} levels={[50, 65]} />
      </div>
      <p>
        Its length is the window. The thick red mark is the limit, where the client compacts; the
        thin ones are your levels. Below {MEDIUM} % of the window it is low, from {MEDIUM} % medium,
        from {HIGH} % high; at the limit it is red.
      </p>
      <h2>Keys</h2>
      <dl>
        {KEYS.map(([key, words]) => (
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
