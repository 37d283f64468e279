/** The learned limits: where each model and client version was compacted. */

import type { CheckedSetting, LearnedLimit, SettingChecks } from "../api-types";
import { ago, count, modelName, tokens } from "../format";
import { now } from "../state/clock";
import { type Column, Table } from "./table";

const columns = (top: number): Column[] => [
  { name: "agent" },
  { name: "version" },
  { name: "model" },
  { name: "compactions", figure: true },
  { name: "automatic", figure: true },
  { name: `0 to ${tokens(top)}` },
  { name: "lowest", figure: true },
  { name: "median", figure: true },
  { name: "highest", figure: true },
];

const WIDTH = 160;

interface LimitsProps {
  limits: LearnedLimit[];
  checks: SettingChecks;
}

export function LimitsTable({ limits, checks }: LimitsProps) {
  const top = Math.max(1, ...limits.map((row) => row.highest ?? 0));
  return (
    <section class="panel" aria-labelledby="limits">
      <h2 id="limits">Where compactions happened</h2>
      <Drifts limits={limits.filter((row) => row.drift !== null)} />
      <Settings checks={checks} />
      {limits.length === 0 && <p class="quiet">No compactions in this period.</p>}
      {limits.length > 0 && (
        <Table label="Learned limits" columns={columns(top)} testid="limits">
          {limits.map((row) => (
            <Line key={[row.agent, row.model, row.version].join("\n")} row={row} top={top} />
          ))}
        </Table>
      )}
    </section>
  );
}

/** Clients that compact elsewhere than expected, in the words of `brimline doctor`. */
function Drifts({ limits }: { limits: LearnedLimit[] }) {
  if (limits.length === 0) return null;
  return (
    <div class="problems" role="alert" data-testid="drifts">
      {limits.map((row) => (
        <p key={[row.agent, row.model, row.version].join("\n")}>
          <strong>
            {row.agent} {row.model ?? "unknown model"}
          </strong>{" "}
          {row.drift}
        </p>
      ))}
    </div>
  );
}

/** What `brimline compact-at` set, and whether the clients heed it. */
function Settings({ checks }: { checks: SettingChecks }) {
  return (
    <div data-testid="compact-at">
      {checks.problem && <p role="alert">{checks.problem}</p>}
      {checks.settings.map((each) => (
        <Setting key={[each.agent, each.model, each.at].join("\n")} setting={each} />
      ))}
    </div>
  );
}

function Setting({ setting }: { setting: CheckedSetting }) {
  const { agent, model, limit, window, at, verdict, text } = setting;
  const isIgnored = verdict === "ignored" || verdict === "elsewhere";
  return (
    <div class={isIgnored ? "problems" : "quiet"} role={isIgnored ? "alert" : undefined}>
      <p>
        <strong>
          {agent} {modelName(model)}
        </strong>{" "}
        compact-at {tokens(limit)}, {Math.round((100 * limit) / window)}% of {tokens(window)}, set{" "}
        {ago(at, now.value)}: {text}
      </p>
    </div>
  );
}

function Line({ row, top }: { row: LearnedLimit; top: number }) {
  return (
    <tr>
      <td>{row.agent}</td>
      <td>{row.version ?? "unknown"}</td>
      <td title={row.model ?? undefined}>{modelName(row.model)}</td>
      <td class="figure">{count(row.compactions)}</td>
      <td class="figure">{count(row.auto)}</td>
      <td>
        <Range row={row} top={top} />
      </td>
      <td class="figure">{tokens(row.lowest)}</td>
      <td class="figure strong">{tokens(row.median)}</td>
      <td class="figure">{tokens(row.highest)}</td>
    </tr>
  );
}

/** The range from lowest to highest with the median; all rows have the same scale. */
function Range({ row, top }: { row: LearnedLimit; top: number }) {
  const { lowest, median, highest } = row;
  if (lowest === null || median === null || highest === null) return <>unknown</>;
  const x = (value: number) => 2 + (value / top) * (WIDTH - 4);
  return (
    <svg class="range" viewBox={`0 0 ${WIDTH} 12`} aria-hidden="true">
      <path class="range-foot" d={`M2 6H${WIDTH - 2}`} />
      <path class="range-span" d={`M${x(lowest)} 6H${x(highest) + 0.01}`} />
      <path class="range-median" d={`M${x(median)} 1V11`} />
    </svg>
  );
}
