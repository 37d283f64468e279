/** What the client sends with every call of a thread, and what of it the agent called. */

import { useSignal } from "@preact/signals";
import type { SystemPart } from "../api-types";
import { calledTools, callsOf, partLabel } from "../explanation/system-parts";
import { ago, count } from "../format";
import { now } from "../state/clock";
import { ShowAll } from "./show-all";
import { type Column, Table } from "./table";

const MAX_ROWS = 10;

const COLUMNS: Column[] = [
  { name: "what" },
  { name: "tokens", figure: true },
  { name: "tools", figure: true },
  { name: "called", figure: true },
  { name: "calls", figure: true },
];

interface Props {
  parts: SystemPart[];
  /** When the client said how the estimated parts are divided. */
  answeredAt: number | null;
}

export function SystemParts({ parts, answeredAt }: Props) {
  const all = useSignal(false);
  if (parts.length < 2) return null;
  return (
    <details class="finding-list">
      <summary>What every call sends</summary>
      <Table label="What every call sends" columns={COLUMNS} testid="system-parts">
        {(all.value ? parts : parts.slice(0, MAX_ROWS)).map((part) => (
          <Row key={`${part.kind}\n${part.name}`} part={part} />
        ))}
      </Table>
      <ShowAll all={all} isLonger={parts.length > MAX_ROWS} />
      {answeredAt !== null && (
        <p class="quiet">
          Estimated: the shares are the client's own answer about a fresh session,{" "}
          {ago(answeredAt, now.value)}, scaled to this session.
        </p>
      )}
    </details>
  );
}

function Row({ part }: { part: SystemPart }) {
  const called = calledTools(part);
  const calls = callsOf(part);
  return (
    <tr data-kind={part.kind}>
      <td class="name-cell" title={part.name}>
        {partLabel(part)}
      </td>
      <td class="figure">{count(part.tokens)}</td>
      <td class="figure">{part.tools > 0 && count(part.tools)}</td>
      <td class="figure">{called !== null && count(called)}</td>
      <td class="figure">{calls !== null && count(calls)}</td>
    </tr>
  );
}
