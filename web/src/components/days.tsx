/** Sessions, peaks, compactions, tokens, cost and cache misses by day. */

import type { Day } from "../api-types";
import { count, day, dollars, tokens } from "../format";
import { sentOf } from "../timeline/plot";
import { ColumnChart } from "./column-chart";
import { MissCell } from "./splits";
import { type Column, Table } from "./table";

const COLUMNS: Column[] = [
  { name: "day" },
  { name: "sessions", figure: true },
  { name: "calls", figure: true },
  { name: "peak", figure: true },
  { name: "compactions", figure: true },
  { name: "sent", figure: true },
  { name: "cache read", figure: true },
  { name: "output", figure: true },
  { name: "cost", figure: true },
  { name: "misses", figure: true },
];

interface Chart {
  title: string;
  value: (day: Day) => number | null;
  words: (value: number | null) => string;
}

const CHARTS: Chart[] = [
  { title: "Sessions", value: (row) => row.sessions, words: count },
  { title: "Peak", value: (row) => row.peak_sent, words: tokens },
  { title: "Compactions", value: (row) => row.compactions, words: count },
  { title: "Tokens sent", value: (row) => sentOf(row.usage), words: tokens },
  { title: "Cost", value: (row) => row.cost, words: dollars },
  { title: "Cache misses", value: (row) => row.misses.cost, words: dollars },
];

export function Days({ days }: { days: Day[] }) {
  const inOrder = [...days].sort((a, b) => (a.day < b.day ? -1 : 1));
  return (
    <section class="panel" aria-labelledby="days">
      <h2 id="days">
        Days <span class="amount">{count(days.length)}</span>
      </h2>
      <div class="charts">
        {CHARTS.map((chart) => (
          <ColumnChart
            key={chart.title}
            title={chart.title}
            most={largestText(inOrder, chart)}
            values={valuesOf(inOrder, chart)}
          />
        ))}
      </div>
      <details>
        <summary>Figures by day</summary>
        <Table label="Days" columns={COLUMNS} testid="days">
          {inOrder.toReversed().map((row) => (
            <Line key={row.day} row={row} />
          ))}
        </Table>
      </details>
    </section>
  );
}

function valuesOf(days: Day[], chart: Chart) {
  return days.map((row) => {
    const value = chart.value(row);
    return { key: day(row.day), value, words: `${day(row.day)}: ${chart.words(value)}` };
  });
}

function largestText(days: Day[], chart: Chart): string {
  const known = days.map(chart.value).filter((value) => value !== null);
  return known.length > 0 ? `up to ${chart.words(Math.max(...known))}` : "unknown";
}

function Line({ row }: { row: Day }) {
  return (
    <tr data-day={row.day}>
      <td class="when">{day(row.day)}</td>
      <td class="figure">{count(row.sessions)}</td>
      <td class="figure">{count(row.calls)}</td>
      <td class="figure">{tokens(row.peak_sent)}</td>
      <td class="figure">{count(row.compactions)}</td>
      <td class="figure">{tokens(sentOf(row.usage))}</td>
      <td class="figure">{tokens(row.usage.cache_read)}</td>
      <td class="figure">{tokens(row.usage.output)}</td>
      <td class="figure">{dollars(row.cost)}</td>
      <MissCell misses={row.misses} />
    </tr>
  );
}
