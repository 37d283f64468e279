/** The totals of a period, and their parts by project, branch, model and agent. */

import { useSignal } from "@preact/signals";
import type { History, MissTotal, Split } from "../api-types";
import { count, dollars, modelName, plural, tokens } from "../format";
import { folder } from "../reading";
import { type KeyFigure, KeyFigures } from "./key-figures";
import { type Column, Table } from "./table";

const PAGE = 8;

const FIGURES: Column[] = [
  { name: "sessions", figure: true },
  { name: "sent", figure: true },
  { name: "cost", figure: true },
  { name: "misses", figure: true },
];

/** What cache misses cost; empty if there were none. */
export function MissCell({ misses }: { misses: MissTotal }) {
  return (
    <td class="figure" title={missText(misses)}>
      {misses.calls > 0 && dollars(misses.cost)}
    </td>
  );
}

function missText({ calls, tokens: missed }: MissTotal): string {
  return `${plural(calls, "cache miss", "cache misses")}, ${tokens(missed)} tokens paid again`;
}

export function Totals({ total }: { total: Split }) {
  const figures: KeyFigure[] = [
    ["sessions", count(total.sessions)],
    ["calls", count(total.calls)],
    ["compactions", count(total.compactions)],
    ["sent", tokens(total.sent)],
    ["output", tokens(total.output)],
    ["cost", dollars(total.cost)],
    ["cache misses", dollars(total.misses.cost), missText(total.misses)],
  ];
  return <KeyFigures figures={figures} label="Totals" testid="totals" />;
}

export function Splits({ history }: { history: History }) {
  return (
    <div class="splits">
      <SplitTable title="Projects" by="project" rows={history.projects} />
      <SplitTable title="Branches" by="branch" rows={history.branches} />
      <SplitTable title="Models" by="model" rows={history.models} />
      <SplitTable title="Agents" by="agent" rows={history.agents} />
    </div>
  );
}

function SplitTable({ title, by, rows }: { title: string; by: string; rows: Split[] }) {
  const all = useSignal(false);
  return (
    <section class="panel" aria-labelledby={`by-${by}`}>
      <h2 id={`by-${by}`}>
        {title} <span class="amount">{count(rows.length)}</span>
      </h2>
      <Table label={title} columns={[{ name: by }, ...FIGURES]} testid={`by-${by}`}>
        {(all.value ? rows : rows.slice(0, PAGE)).map((row) => (
          <tr key={row.key} data-key={row.key}>
            <td class="name-cell" title={row.key}>
              <Name by={by} of={row.key} />
            </td>
            <td class="figure">{count(row.sessions)}</td>
            <td class="figure">{tokens(row.sent)}</td>
            <td class="figure">{dollars(row.cost)}</td>
            <MissCell misses={row.misses} />
          </tr>
        ))}
      </Table>
      {!all.value && rows.length > PAGE && (
        <button
          type="button"
          class="more"
          onClick={() => {
            all.value = true;
          }}
        >
          Show all
        </button>
      )}
    </section>
  );
}

/** The name of a part: of a model the short one, of a project the last part of its path. */
function Name({ by, of }: { by: string; of: string }) {
  if (by === "model") return <>{modelName(of)}</>;
  if (by === "project") return <>{folder(of)}</>;
  const colon = by === "branch" ? of.lastIndexOf(": ") : -1; // no branch has a colon in its name
  if (colon < 0) return <>{of}</>;
  return (
    <>
      {of.slice(colon + 2)} <span class="quiet">{folder(of.slice(0, colon))}</span>
    </>
  );
}
