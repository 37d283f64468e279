/** The sessions that need a handoff now, each with a button that asks for it. */

import { useSignal } from "@preact/signals";
import * as api from "../api";
import type { SessionView } from "../api-types";
import { isReachable, unreachableReason } from "../app";
import { count, occupancy, plural } from "../format";
import { headline, LEVEL_TEXTS, levelOf, mainThread } from "../reading";
import { listed, MAX_LISTED } from "../state/fleet";
import { sessionHash } from "../state/route";
import { HandoffBadge } from "./badges";

/** What the agent reads; the daemon adds who sent it. */
const REQUEST =
  "Write a handoff document now (the task, what is done, what is open, where to look) and save it " +
  "with `brimline handoff FILE`; then continue.";

const FIRST = 10;

interface Props {
  sessions: SessionView[];
  /** How many there are in all: not all are listed. */
  amount: number;
}

export function HandoffRequests({ sessions, amount }: Props) {
  const all = useSignal(false);
  const shown = all.value ? sessions : sessions.slice(0, FIRST);
  const most = Math.min(amount, MAX_LISTED);
  return (
    <section class="panel" aria-labelledby="needs-handoff" data-testid="needs-handoff">
      <h2 id="needs-handoff">
        Need a handoff now <span class="amount">{count(amount)}</span>
      </h2>
      {amount === 0 && <p class="quiet">No session is near its limit without a fresh handoff.</p>}
      <ul class="requests">
        {shown.map((view) => (
          <RequestItem key={view.session.id} view={view} />
        ))}
      </ul>
      {!all.value && shown.length < most && (
        <button
          type="button"
          class="more"
          onClick={() => {
            all.value = true;
            listed.value = MAX_LISTED;
          }}
        >
          {amount > most ? "Show the fullest" : "Show all"} {count(most)}
        </button>
      )}
    </section>
  );
}

function RequestItem({ view }: { view: SessionView }) {
  const { id, agent, user, team, host } = view.session;
  const reason = unreachableReason(view);
  const main = mainThread(view);
  const level = levelOf(main);
  return (
    <li data-session={id} data-level={level}>
      <span class="request-percent">
        {occupancy(main?.percent_raw ?? null)}
        {level !== "unknown" && (
          <span class="level" data-level={level}>
            {LEVEL_TEXTS[level]}
          </span>
        )}
      </span>
      <a class="request-name" href={sessionHash(id)}>
        <span class="agent">{agent}</span> <span class="name">{headline(view.session)}</span>
      </a>
      <span class="request-who">
        {[user, team, host].filter(Boolean).join(" · ")}
        {view.calls_left !== null && ` · about ${plural(view.calls_left, "call")} left`}
      </span>
      <HandoffBadge handoff={view.handoff} />
      {isReachable(view) && <RequestButton id={id} />}
      {reason !== null && (
        <span class="quiet request-act" title="its machine needs an uplink with receive = all">
          {reason}
        </span>
      )}
    </li>
  );
}

function RequestButton({ id }: { id: string }) {
  const result = useSignal("");
  const ask = async () => {
    result.value = "...";
    try {
      result.value = (await api.send(id, REQUEST, true)) ?? "Asked.";
    } catch (error) {
      if (!(error instanceof api.RequestFailed)) throw error;
      result.value = error.message;
    }
  };
  return (
    <span class="request-act">
      <output aria-live="polite">{result.value}</output>
      <button type="button" disabled={result.value === "Asked."} onClick={() => void ask()}>
        Ask for a handoff
      </button>
    </span>
  );
}
