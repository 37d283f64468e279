/** The sessions of a period, in a selectable order. */

import { useSignal } from "@preact/signals";
import type { PastSession } from "../api-types";
import { count, dollars, modelName, moment, tokens } from "../format";
import { folder, headline } from "../reading";
import { now } from "../state/clock";
import { sessionHash } from "../state/route";
import { Select } from "./inputs";
import { type Column, Table } from "./table";

const COLUMNS: Column[] = [
  { name: "session" },
  { name: "agent" },
  { name: "model" },
  { name: "last" },
  { name: "calls", figure: true },
  { name: "peak", figure: true },
  { name: "compactions", figure: true },
  { name: "cost", figure: true },
];

type By = "last" | "peak_sent" | "compactions" | "cost" | "calls";

const ORDERS: Record<By, string> = {
  last: "latest first",
  peak_sent: "highest peak",
  compactions: "most compactions",
  cost: "most expensive",
  calls: "most calls",
};

const PAGE = 100;

export function PastSessions({ sessions }: { sessions: PastSession[] }) {
  const by = useSignal<By>("last");
  const shown = useSignal(PAGE);
  const inOrder = [...sessions].sort((a, b) => (b[by.value] ?? -1) - (a[by.value] ?? -1));
  return (
    <section class="panel" aria-labelledby="past">
      <div class="panel-head">
        <h2 id="past">
          Sessions <span class="amount">{count(sessions.length)}</span>
        </h2>
        <Select
          label="order"
          value={by.value}
          of={ORDERS}
          set={(to) => {
            by.value = to;
          }}
        />
      </div>
      <Table label="Sessions" columns={COLUMNS} testid="past-sessions">
        {inOrder.slice(0, shown.value).map((row) => (
          <Line key={row.session} row={row} />
        ))}
      </Table>
      {shown.value < sessions.length && (
        <button
          type="button"
          class="more"
          onClick={() => {
            shown.value += PAGE;
          }}
        >
          Show more
        </button>
      )}
    </section>
  );
}

function Line({ row }: { row: PastSession }) {
  return (
    <tr data-session={row.session}>
      <td class="name-cell">
        <a href={sessionHash(row.session)} title={row.title ?? undefined}>
          {headline({ ...row, id: row.session })}
        </a>
        {row.title && row.project && <span class="why">{folder(row.project)}</span>}
      </td>
      <td>{row.agent}</td>
      <td>{modelName(row.model)}</td>
      <td class="when">{moment(row.last, now.peek())}</td>
      <td class="figure">{count(row.calls)}</td>
      <td class="figure">{tokens(row.peak_sent)}</td>
      <td class="figure">{count(row.compactions)}</td>
      <td class="figure">{dollars(row.cost)}</td>
    </tr>
  );
}
