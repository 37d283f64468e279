/** What was: days, learned limits, past sessions. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import * as api from "../api";
import type { History } from "../api-types";
import { Days } from "../parts/days";
import { Choice } from "../parts/inputs";
import { LimitsTable } from "../parts/limits";
import { PastSessions } from "../parts/past";

const SPANS = { "7d": "7 days", "30d": "30 days", "90d": "90 days", "365d": "a year" };
const AGAIN = 60_000;

export function HistoryView() {
  const since = useSignal<keyof typeof SPANS>("30d");
  const history = useSignal<History | null>(null);
  const error = useSignal("");
  useEffect(() => {
    let gone = false;
    const load = async () => {
      try {
        const told = await api.history(since.value);
        if (gone) return;
        history.value = told;
        error.value = "";
      } catch (refused) {
        if (!(refused instanceof api.Refused)) throw refused;
        error.value = refused.message;
      }
    };
    void load();
    const timer = setInterval(() => void load(), AGAIN);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [since.value]);
  return (
    <article class="history" data-testid="history" aria-label="History">
      <header class="history-head">
        <h1>History</h1>
        <Choice
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
      {history.value ? (
        <Whole history={history.value} />
      ) : (
        <p class="quiet">Asking the daemon ...</p>
      )}
    </article>
  );
}

function Whole({ history }: { history: History }) {
  const { days, limits, sessions } = history;
  if (days.length + limits.length + sessions.length === 0) {
    return <p class="quiet">Nothing was heard in this time.</p>;
  }
  return (
    <>
      <Days days={days} />
      <LimitsTable limits={limits} />
      <PastSessions sessions={sessions} />
    </>
  );
}
