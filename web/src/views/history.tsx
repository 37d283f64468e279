/** The history: usage over time and its parts, learned limits, past sessions. */

import { type Signal, useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { History, HistoryPeriod } from "../api-types";
import { Select } from "../components/inputs";
import { LimitsTable } from "../components/learned-limits";
import { Panel } from "../components/panel";
import { PastSessions } from "../components/past-sessions";
import { PeriodTable } from "../components/period-table";
import { partName, SplitTable, Totals } from "../components/splits";
import { ToolsPanel } from "../components/tools";
import { UsageChart } from "../components/usage-chart";
import { UNKNOWN } from "../format";
import { coloursOf, columnsOf, FIGURES, type FigureName } from "../history/columns";
import { PARTS, type Part, PERIODS, type Period, useHistory, usePeriods } from "../state/history";

const SPANS = { "7d": "7 days", "30d": "30 days", "90d": "90 days", "365d": "a year" };
const FIGURE_NAMES = Object.fromEntries(
  Object.entries(FIGURES).map(([name, { title }]) => [name, title]),
) as Record<FigureName, string>;

interface Choices {
  since: Signal<keyof typeof SPANS>;
  per: Signal<Period>;
  by: Signal<Part>;
  figure: Signal<FigureName>;
}

export function HistoryView() {
  const choices: Choices = {
    since: useSignal<keyof typeof SPANS>("30d"),
    per: useSignal<Period>("day"),
    by: useSignal<Part>("project"),
    figure: useSignal<FigureName>("cost"),
  };
  const { since, per, by } = choices;
  const { value: history, error } = useHistory(since.value);
  const { value: periods } = usePeriods(since.value, per.value, by.value);
  return (
    <article class="history" data-testid="history" aria-label="History">
      <header class="history-head">
        <h1>History</h1>
        <Choice label="last" of={SPANS} choice={since} testid="since" />
        <Choice label="by" of={PERIODS} choice={per} testid="per" />
        <Choice label="split by" of={PARTS} choice={by} testid="by" />
        {error.value && <p role="alert">{error.value}</p>}
      </header>
      {history.value && periods.value ? (
        <HistoryPanels history={history.value} periods={periods.value} choices={choices} />
      ) : (
        <p class="quiet">Loading ...</p>
      )}
    </article>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  of: Record<T, string>;
  choice: Signal<T>;
  testid: string;
}

function Choice<T extends string>({ label, of, choice, testid }: ChoiceProps<T>) {
  const set = (to: T) => {
    choice.value = to;
  };
  return <Select label={label} value={choice.value} of={of} set={set} testid={testid} />;
}

interface PanelsProps {
  history: History;
  periods: HistoryPeriod[];
  choices: Choices;
}

function HistoryPanels({ history, periods, choices }: PanelsProps) {
  const { limits, sessions, total, compact_at: checks } = history;
  const projects = history.projects.map(({ key }) => key).filter((key) => key !== UNKNOWN);
  if (periods.length + limits.length + sessions.length === 0) {
    return <p class="quiet">No sessions in this period.</p>;
  }
  return (
    <>
      <Totals total={total} />
      <Usage history={history} periods={periods} choices={choices} />
      <ToolsPanel projects={projects} />
      <LimitsTable limits={limits} checks={checks} />
      <PastSessions sessions={sessions} />
    </>
  );
}

/** The chart of the chosen figure, its legend with the parts of the span, and a table. */
function Usage({ history, periods, choices }: PanelsProps) {
  const by = choices.by.value;
  const rows = partsOf(history, by);
  const figure = FIGURES[choices.figure.value];
  const colours = useMemo(() => coloursOf(rows), [rows]);
  const columns = useMemo(() => columnsOf(periods, figure, colours), [periods, figure, colours]);
  return (
    <Panel
      id="usage"
      title="Usage"
      tools={<Choice label="figure" of={FIGURE_NAMES} choice={choices.figure} testid="figure" />}
    >
      <div class="usage-parts">
        <div>
          <UsageChart columns={columns} figure={figure} nameOf={(key) => partName(by, key)} />
        </div>
        <SplitTable key={by} by={by} rows={rows} colours={colours} />
      </div>
      <details class="finding-list">
        <summary>Figures by {choices.per.value}</summary>
        <PeriodTable per={choices.per.value} periods={periods} />
      </details>
    </Panel>
  );
}

function partsOf({ projects, branches, models, agents }: History, by: Part) {
  return { project: projects, branch: branches, model: models, agent: agents }[by];
}
