/** The compactions of a session: tokens before and after, trigger, injected handoff. */

import type { CompactionRow, HandoffHead, Timeline } from "../api-types";
import { count, modelName, moment } from "../format";
import { now } from "../state/clock";
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
  { name: "model" },
];

export function CompactionsTable({ timeline }: { timeline: Timeline }) {
  const { compactions, handoffs } = timeline;
  return (
    <Panel id="compactions" title="Compactions" amount={count(compactions.length)} wide>
      <Table label="Compactions" columns={COLUMNS} testid="compactions">
        {compactions.map((row) => (
          <Line
            key={`${row.thread}\n${row.cycle}`}
            row={row}
            injected={injectedAfter(row, compactions, handoffs)}
          />
        ))}
      </Table>
    </Panel>
  );
}

function Line({ row, injected }: { row: CompactionRow; injected: HandoffHead | null }) {
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
      <td>
        {injected ? `handoff ${injected.draft ? "draft" : `by ${injected.author}`}` : "nothing"}
      </td>
      <td>{modelName(row.model)}</td>
    </tr>
  );
}
