/** The compactions of a session: tokens, trigger, what is kept, what was injected again. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import * as api from "../api";
import type {
  CompactionEffect,
  CompactionRow,
  FactCount,
  HandoffHead,
  MeasuredCompaction,
  Timeline,
} from "../api-types";
import { count, modelName, moment } from "../format";
import { now } from "../state/clock";
import type { SessionDetail } from "../state/session-detail";
import { injectedAfter } from "../timeline/marks";
import { Panel } from "./panel";
import { type Column, Table } from "./table";

const COLUMNS: Column[] = [
  { name: "at" },
  { name: "thread" },
  { name: "cycle", figure: true },
  { name: "before", figure: true },
  { name: "after", figure: true },
  { name: "trigger" },
  { name: "injected" },
  { name: "statements kept", figure: true },
  { name: "files kept", figure: true },
  { name: "numbers kept", figure: true },
  { name: "calls to edit", figure: true },
  { name: "model" },
];

export function CompactionsTable({
  timeline,
  detail,
}: {
  timeline: Timeline;
  detail: SessionDetail;
}) {
  const { compactions, handoffs } = timeline;
  const measured = useMeasured(detail);
  return (
    <Panel id="compactions" title="Compactions" amount={count(compactions.length)} wide>
      <Table label="Compactions" columns={COLUMNS} testid="compactions">
        {compactions.map((row) => (
          <Line
            key={`${row.thread}\n${row.cycle}`}
            row={row}
            injected={injectedAfter(row, compactions, handoffs)}
            effect={
              (row.thread === "main" &&
                measured.find(({ cycle }) => cycle === row.cycle)?.effect) ||
              null
            }
          />
        ))}
      </Table>
    </Panel>
  );
}

/** What the transcript says of the compactions: loaded again when the transcript was read again. */
function useMeasured(detail: SessionDetail): MeasuredCompaction[] {
  const measured = useSignal<MeasuredCompaction[]>([]);
  const explanation = detail.explanation.value;
  useEffect(() => {
    if (explanation === null || explanation.problem !== null) return;
    api.compactions(detail.id).then(
      (answer) => {
        measured.value = answer.compactions;
      },
      (error) => {
        if (!(error instanceof api.RequestFailed)) throw error;
      },
    );
  }, [detail, explanation, measured]);
  return measured.value;
}

interface LineProps {
  row: CompactionRow;
  injected: HandoffHead | null;
  effect: CompactionEffect | null;
}

function Line({ row, injected, effect }: LineProps) {
  const facts = effect?.facts;
  return (
    <tr data-cycle={row.cycle}>
      <td class="when">{moment(row.at, now.peek())}</td>
      <td>{row.thread}</td>
      <td class="figure">{row.cycle}</td>
      <td class="figure strong">{count(row.before)}</td>
      <td class="figure strong">{count(row.after)}</td>
      <td>
        {row.trigger ?? "unknown"}
        {row.inferred && <span class="why">inferred from usage</span>}
      </td>
      <td>{injectedText(injected, effect)}</td>
      {[facts?.statements, facts?.files, facts?.numbers].map((each, at) => (
        <td key={COLUMNS[at]?.name} class="figure">
          {keptText(each, effect?.is_summary_encrypted ?? false)}
        </td>
      ))}
      <td class="figure">{effect && (effect.calls_to_edit ?? "none yet")}</td>
      <td>{modelName(row.model)}</td>
    </tr>
  );
}

function injectedText(handoff: HandoffHead | null, effect: CompactionEffect | null): string {
  const what = handoff && `handoff ${handoff.draft ? "draft" : `by ${handoff.author}`}`;
  const size = effect?.injected_chars ? `${count(effect.injected_chars)} characters` : null;
  return [what, size].filter(Boolean).join(", ") || "nothing";
}

function keptText(facts: FactCount | undefined, isLeast: boolean): string {
  if (!facts?.total) return "";
  return `${isLeast ? "≥ " : ""}${facts.kept} of ${facts.total}`;
}
