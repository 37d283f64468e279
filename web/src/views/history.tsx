/** The history: days, learned limits, past sessions. */

import { useSignal } from "@preact/signals";
import type { History } from "../api-types";
import { Days } from "../components/days";
import { Select } from "../components/inputs";
import { LimitsTable } from "../components/learned-limits";
import { PastSessions } from "../components/past-sessions";
import { Splits, Totals } from "../components/splits";
import { useHistory } from "../state/history";

const SPANS = { "7d": "7 days", "30d": "30 days", "90d": "90 days", "365d": "a year" };

export function HistoryView() {
  const since = useSignal<keyof typeof SPANS>("30d");
  const { history, error } = useHistory(since.value);
  return (
    <article class="history" data-testid="history" aria-label="History">
      <header class="history-head">
        <h1>History</h1>
        <Select
          label="last"
          value={since.value}
          of={SPANS}
          set={(to) => {
            since.value = to;
          }}
          testid="since"
        />
        {error.value && <p role="alert">{error.value}</p>}
      </header>
      {history.value ? <HistoryTables history={history.value} /> : <p class="quiet">Loading ...</p>}
    </article>
  );
}

function HistoryTables({ history }: { history: History }) {
  const { days, limits, sessions, total } = history;
  if (days.length + limits.length + sessions.length === 0) {
    return <p class="quiet">No sessions in this period.</p>;
  }
  return (
    <>
      <Totals total={total} />
      <Days days={days} />
      <Splits history={history} />
      <LimitsTable limits={limits} />
      <PastSessions sessions={sessions} />
    </>
  );
}
