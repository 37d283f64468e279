/** The totals of a span, and their parts by project, branch, model or agent. */

import { useSignal } from "@preact/signals";
import type { MissTotal, Split } from "../api-types";
import { count, dollars, modelName, plural, tokens } from "../format";
import { OTHERS_COLOUR } from "../history/columns";
import { folder } from "../reading";
import type { Part } from "../state/history";
import { type KeyFigure, KeyFigures } from "./key-figures";
import { ShowAll } from "./show-all";
import { Swatch } from "./swatch";
import { type Column, Table } from "./table";

const PAGE = 10;

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

interface SplitProps {
  by: Part;
  rows: Split[];
  /** The colours of the parts in the chart. */
  colours: Map<string, number>;
}

/** The parts of a span, which are the legend of its chart too. */
export function SplitTable({ by, rows, colours }: SplitProps) {
  const all = useSignal(false);
  return (
    <div class="splits">
      <Table label={`By ${by}`} columns={[{ name: by }, ...FIGURES]} testid={`by-${by}`}>
        {(all.value ? rows : rows.slice(0, PAGE)).map((row) => (
          <tr key={row.key} data-key={row.key}>
            <td class="name-cell" title={row.key}>
              <Swatch colour={colours.get(row.key) ?? OTHERS_COLOUR} />{" "}
              <PartName by={by} of={row.key} />
            </td>
            <td class="figure">{count(row.sessions)}</td>
            <td class="figure">{tokens(row.sent)}</td>
            <td class="figure">{dollars(row.cost)}</td>
            <MissCell misses={row.misses} />
          </tr>
        ))}
      </Table>
      <ShowAll all={all} isLonger={rows.length > PAGE} />
    </div>
  );
}

/** The name of a part as text: of a model the short one, of a project the last part of its path. */
export function partName(by: Part, of: string): string {
  if (by === "model") return modelName(of);
  if (by === "project") return folder(of) ?? of;
  const colon = by === "branch" ? of.lastIndexOf(": ") : -1; // no branch has a colon in its name
  return of.slice(colon < 0 ? 0 : colon + 2);
}

/** The name of a part, and of a branch also its project. */
function PartName({ by, of }: { by: Part; of: string }) {
  const project = by === "branch" ? of.slice(0, Math.max(0, of.lastIndexOf(": "))) : "";
  return (
    <>
      {partName(by, of)} {project && <span class="quiet">{folder(project)}</span>}
    </>
  );
}
