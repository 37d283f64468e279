/** What a fleet used: a chart by day, week or month, its groups, and a CSV file. */

import { useSignal } from "@preact/signals";
import { useId, useMemo } from "preact/hooks";
import { usageQuery } from "../api";
import type { FleetUsage, FleetUsageSum, HistoryPeriod, Split } from "../api-types";
import { Select } from "../components/inputs";
import { type KeyFigure, KeyFigures } from "../components/key-figures";
import { Panel } from "../components/panel";
import { ShowAll } from "../components/show-all";
import { Swatch } from "../components/swatch";
import { type Column, Table } from "../components/table";
import { UsageChart } from "../components/usage-chart";
import { count, dollars, modelName, plural, tokens } from "../format";
import {
  coloursOf,
  columnsOf,
  FIGURES,
  type FigureName,
  OTHERS_COLOUR,
  periodName,
} from "../history/columns";
import { GROUPINGS, type Grouping } from "../state/fleet";
import { PERIODS, type Period, useFleetUsage } from "../state/history";

const SPANS = {
  "7d": "7 days",
  "30d": "30 days",
  "90d": "90 days",
  "365d": "a year",
  days: "from ... to",
} as const;
const SHOWN = {
  cost: "cost",
  sent: "tokens sent",
  calls: "calls",
  misses: "cost of cache misses",
} as const satisfies Partial<Record<FigureName, string>>;

const PAGE = 10;

export function FleetUsageView() {
  const span = useSignal<keyof typeof SPANS>("30d");
  const first = useSignal("");
  const last = useSignal("");
  const per = useSignal<Period>("day");
  const by = useSignal<Grouping>("team");
  const query = usageQuery({
    by: by.value,
    per: per.value,
    ...(span.value === "days" ? { from: first.value, to: last.value } : { since: span.value }),
  });
  const { value: usage, error } = useFleetUsage(query);
  const choose =
    <T extends string>(choice: { value: T }) =>
    (to: T) => {
      choice.value = to;
    };
  return (
    <article class="history" data-testid="fleet-usage" aria-label="History">
      <header class="history-head">
        <h1>History</h1>
        <Select label="last" value={span.value} of={SPANS} set={choose(span)} testid="since" />
        {span.value === "days" && (
          <>
            <DayInput label="from" value={first.value} set={choose(first)} />
            <DayInput label="to" value={last.value} set={choose(last)} />
          </>
        )}
        <Select label="by" value={per.value} of={PERIODS} set={choose(per)} testid="per" />
        <Select label="split by" value={by.value} of={GROUPINGS} set={choose(by)} testid="by" />
        <a href={`/v1/fleet/usage.csv${query}`} download="usage.csv">
          CSV
        </a>
        {error.value && <p role="alert">{error.value}</p>}
      </header>
      {usage.value ? <UsagePanels usage={usage.value} /> : <p class="quiet">Loading ...</p>}
    </article>
  );
}

interface DayProps {
  label: string;
  value: string;
  set: (to: string) => void;
}

function DayInput({ label, value, set }: DayProps) {
  const id = useId();
  return (
    <span class="choice">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="date"
        value={value}
        data-testid={`day-${label}`}
        onChange={(event) => set(event.currentTarget.value)}
      />
    </span>
  );
}

function UsagePanels({ usage }: { usage: FleetUsage }) {
  const { total } = usage;
  const figures: KeyFigure[] = [
    ["sessions", count(total.sessions)],
    ["calls", count(total.calls)],
    ["sent", tokens(total.sent), `${tokens(total.cache_read)} of them from the cache`],
    ["output", tokens(total.output)],
    ["cost", dollars(total.cost)],
    ["cache misses", dollars(total.miss_cost), "the part of the cost that cache misses added"],
  ];
  if (total.calls === 0) return <p class="quiet">Nothing was used in this period.</p>;
  return (
    <>
      <KeyFigures figures={figures} label="Totals" testid="totals" />
      <Usage usage={usage} />
    </>
  );
}

function Usage({ usage }: { usage: FleetUsage }) {
  const chosen = useSignal<keyof typeof SHOWN>("cost");
  const figure = FIGURES[chosen.value];
  const groups = useMemo(() => usage.groups.map(asSplit), [usage]);
  const periods = useMemo(() => usage.periods.map(asPeriod), [usage]);
  const colours = useMemo(() => coloursOf(groups), [groups]);
  const columns = useMemo(() => columnsOf(periods, figure, colours), [periods, figure, colours]);
  const nameOf = (key: string) => groupName(usage.by, key);
  return (
    <Panel
      id="usage"
      title={`Usage, ${usage.first} to ${usage.last} (UTC)`}
      tools={
        <Select
          label="figure"
          value={chosen.value}
          of={SHOWN}
          set={(to) => {
            chosen.value = to;
          }}
          testid="figure"
        />
      }
    >
      <div class="usage-parts">
        <div>
          <UsageChart columns={columns} figure={figure} nameOf={nameOf} />
        </div>
        <Groups usage={usage} colours={colours} nameOf={nameOf} />
      </div>
      <details class="finding-list">
        <summary>Figures by {usage.per}</summary>
        <Table
          label={`By ${usage.per}`}
          columns={[{ name: usage.per }, ...COLUMNS]}
          testid="periods"
        >
          {usage.periods.toReversed().map(({ key, total }) => (
            <tr key={key} data-key={key}>
              <td class="when">{periodName(key)}</td>
              <Figures of={total} />
            </tr>
          ))}
        </Table>
      </details>
    </Panel>
  );
}

const COLUMNS: Column[] = [
  { name: "sessions", figure: true },
  { name: "calls", figure: true },
  { name: "sent", figure: true },
  { name: "output", figure: true },
  { name: "cost", figure: true },
  { name: "misses", figure: true },
];

function Figures({ of }: { of: FleetUsageSum }) {
  return (
    <>
      <td class="figure">{count(of.sessions)}</td>
      <td class="figure">{count(of.calls)}</td>
      <td class="figure">{tokens(of.sent)}</td>
      <td class="figure">{tokens(of.output)}</td>
      <td class="figure">{dollars(of.cost)}</td>
      <td class="figure">{of.miss_cost ? dollars(of.miss_cost) : ""}</td>
    </>
  );
}

const GROUP_COLUMNS = COLUMNS.filter(({ name }) => name !== "calls" && name !== "output");

interface GroupsProps {
  usage: FleetUsage;
  colours: Map<string, number>;
  nameOf: (key: string) => string;
}

/** The groups of the span, which are the legend of its chart too. */
function Groups({ usage, colours, nameOf }: GroupsProps) {
  const all = useSignal(false);
  const name = GROUPINGS[usage.by];
  const rows = all.value ? usage.groups : usage.groups.slice(0, PAGE);
  return (
    <div class="splits">
      <Table label={`By ${name}`} columns={[{ name }, ...GROUP_COLUMNS]} testid="usage-groups">
        {rows.map((row) => (
          <tr key={row.key} data-key={row.key ?? ""}>
            <td class="name-cell" title={row.key ?? undefined}>
              <Swatch colour={colours.get(row.key ?? "") ?? OTHERS_COLOUR} />{" "}
              {nameOf(row.key ?? "")}
            </td>
            <td class="figure">{count(row.sessions)}</td>
            <td class="figure">{tokens(row.sent)}</td>
            <td class="figure">{dollars(row.cost)}</td>
            <td class="figure">{row.miss_cost ? dollars(row.miss_cost) : ""}</td>
          </tr>
        ))}
      </Table>
      <ShowAll all={all} isLonger={usage.groups.length > PAGE} />
      {usage.more_groups > 0 && (
        <p class="quiet">{plural(usage.more_groups, "group")} of less cost: the CSV has all.</p>
      )}
    </div>
  );
}

function groupName(by: Grouping, key: string): string {
  if (key === "") return `no ${GROUPINGS[by]}`;
  return by === "model" ? modelName(key) : key;
}

/** The chart's form of a sum: it has no compactions. */
function asSplit({ key, sessions, calls, sent, output, cost, miss_cost }: FleetUsageSum): Split {
  const misses = { calls: 0, tokens: 0, cost: miss_cost };
  return { key: key ?? "", sessions, calls, compactions: 0, sent, output, cost, misses };
}

function asPeriod({ key, total, groups }: FleetUsage["periods"][number]): HistoryPeriod {
  return { key, total: asSplit(total), peak_sent: null, parts: groups.map(asSplit) };
}
