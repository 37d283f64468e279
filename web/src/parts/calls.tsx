/** The calls of a session, latest first. */

import { useSignal } from "@preact/signals";
import type { CallRow } from "../api-types";
import { count, moment } from "../format";
import { now } from "../state/clock";
import { placeCalls, sentOf } from "../timeline/plot";
import { type Column, Table } from "./table";

const PAGE = 25;

const COLUMNS: Column[] = [
  { name: "at" },
  { name: "thread" },
  { name: "cycle", figure: true },
  { name: "sent", figure: true },
  { name: "input", figure: true },
  { name: "cache read", figure: true },
  { name: "cache write", figure: true },
  { name: "output", figure: true },
  { name: "model" },
];

export function CallsTable({ calls }: { calls: CallRow[] }) {
  const shown = useSignal(PAGE);
  const latest = placeCalls(calls, "calls").reverse().slice(0, shown.value);
  return (
    <section class="panel" aria-labelledby="calls">
      <h2 id="calls">
        Calls <span class="amount">{count(calls.length)}</span>
      </h2>
      <Table label="Calls" columns={COLUMNS} testid="calls">
        {latest.map(({ call }) => (
          <Line key={`${call.thread}\n${call.call}`} call={call} />
        ))}
      </Table>
      {shown.value < calls.length && (
        <button
          type="button"
          class="more"
          onClick={() => {
            shown.value += 4 * PAGE;
          }}
        >
          Show more
        </button>
      )}
    </section>
  );
}

function Line({ call }: { call: CallRow }) {
  return (
    <tr data-call={call.call}>
      <td class="when">{moment(call.at, now.peek())}</td>
      <td>{call.thread}</td>
      <td class="figure">{call.cycle}</td>
      <td class="figure strong">{count(sentOf(call))}</td>
      <td class="figure">{count(call.input)}</td>
      <td class="figure">{count(call.cache_read)}</td>
      <td class="figure">{count(call.cache_write)}</td>
      <td class="figure">{count(call.output)}</td>
      <td>{call.model ?? "unknown"}</td>
    </tr>
  );
}
