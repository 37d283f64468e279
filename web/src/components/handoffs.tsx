/** The handoff documents of a session; shows the last one, or the selected one. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { HandoffRow, HandoffStatus } from "../api-types";
import { isFleet } from "../app";
import { moment, plural } from "../format";
import { now } from "../state/clock";
import type { SessionDetail } from "../state/session-detail";
import { Select } from "./inputs";
import { MarkdownText } from "./markdown-text";
import { Panel } from "./panel";

export function Handoffs({ detail, now: state }: { detail: SessionDetail; now: HandoffStatus }) {
  const draft = detail.draft.value;
  const saved = detail.handoffs.value;
  // A draft is not saved if the agent wrote a document itself.
  const isUnsaved = draft !== null && saved.every((row) => row.id !== draft.id);
  const handoffs = isUnsaved ? [draft, ...saved] : saved;
  const chosen = useSignal("");
  useEffect(() => {
    if (draft) chosen.value = draft.id;
  }, [draft]);
  const shown = handoffs.find((row) => row.id === chosen.value) ?? handoffs[0];
  const labels = Object.fromEntries(handoffs.map((row) => [row.id, labelOf(row)]));
  return (
    <Panel id="handoff" title="Handoff" amount={state.state}>
      {!shown && (
        <p class="quiet">
          None. The agent writes one with <code>brimline handoff PATH</code>.
        </p>
      )}
      {handoffs.length > 1 && shown && (
        <Select
          label="document"
          value={shown.id}
          of={labels}
          set={(to) => {
            chosen.value = to;
          }}
        />
      )}
      {shown && <Document row={shown} />}
    </Panel>
  );
}

function labelOf(row: HandoffRow): string {
  return `${moment(row.at, now.peek())}${row.draft ? ", draft" : ""}`;
}

function Document({ row }: { row: HandoffRow }) {
  const used =
    row.used_at === null ? "not injected yet" : `injected ${moment(row.used_at, now.peek())}`;
  return (
    <>
      <p class="quiet">
        by {row.author}, {moment(row.at, now.peek())}, cycle {row.cycle}
        {row.calls !== null && `, after ${plural(row.calls, "call")}`}; {used}
      </p>
      <p class="path">{row.path}</p>
      {row.text === "" && isFleet.value ? (
        <p class="quiet">Its text stays on its machine.</p>
      ) : (
        <MarkdownText text={row.text} />
      )}
    </>
  );
}
