/** The figures of each day, week or month, the latest first. */

import type { HistoryPeriod } from "../api-types";
import { count, dollars, tokens } from "../format";
import { periodName } from "../history/columns";
import { MissCell } from "./splits";
import { type Column, Table } from "./table";

const COLUMNS: Column[] = [
  { name: "sessions", figure: true },
  { name: "calls", figure: true },
  { name: "peak", figure: true },
  { name: "compactions", figure: true },
  { name: "sent", figure: true },
  { name: "output", figure: true },
  { name: "cost", figure: true },
  { name: "misses", figure: true },
];

export function PeriodTable({ per, periods }: { per: string; periods: HistoryPeriod[] }) {
  return (
    <Table label={`By ${per}`} columns={[{ name: per }, ...COLUMNS]} testid="periods">
      {periods.toReversed().map(({ key, total, peak_sent }) => (
        <tr key={key} data-key={key}>
          <td class="when">{periodName(key)}</td>
          <td class="figure">{count(total.sessions)}</td>
          <td class="figure">{count(total.calls)}</td>
          <td class="figure">{total.calls > 0 && tokens(peak_sent)}</td>
          <td class="figure">{count(total.compactions)}</td>
          <td class="figure">{tokens(total.sent)}</td>
          <td class="figure">{tokens(total.output)}</td>
          <td class="figure">{dollars(total.cost)}</td>
          <MissCell misses={total.misses} />
        </tr>
      ))}
    </Table>
  );
}
