/** One session of the overview. */

import { useComputed } from "@preact/signals";
import { memo } from "preact/compat";
import type { SessionView, ThreadView } from "../api-types";
import { hasSeveralHosts, sessionName, sessionStore } from "../app";
import { ago, countRange, occupancy, plural, shortPercent, tokens } from "../format";
import {
  isOverWindow,
  LEVEL_TEXTS,
  lastCallAt,
  levelOf,
  limitPercent,
  mainThread,
  stateOf,
  stateText,
  subagentThreads,
} from "../reading";
import { now } from "../state/clock";
import { sessionHash } from "../state/route";
import { HandoffBadge, SessionProblem, UnreadBadge } from "./badges";
import { Bar } from "./bar";
import { NeedText } from "./need-text";
import { Sparkline } from "./sparkline";

const MAX_SUBAGENTS = 4;

interface Props {
  id: string;
  /** Its place in the list, from 1, and the length of the list: not all rows are drawn. */
  place: number;
  of: number;
}

export const OverviewRow = memo(function Row({ id, place, of }: Props) {
  const view = sessionStore.get(id)?.value;
  if (!view) return null;
  const main = mainThread(view);
  return (
    <li
      class="row"
      data-testid="session"
      data-session={id}
      data-level={levelOf(main)}
      data-agent={view.session.agent}
      aria-posinset={place}
      aria-setsize={of}
    >
      <div class="row-in">
        <SessionName view={view} />
        <div class="row-bar">
          <Bar thread={main} limitAt={view.limit_at} />
          <BarCaption view={view} main={main} />
          <NeedText need={view.need} />
          <SessionProblem problem={view.session.problem} />
        </div>
        <Percent main={main} />
        <div class="row-spark" title="tokens sent in this cycle">
          {view.trend.length > 0 && <Sparkline trend={view.trend} />}
        </div>
        <div class="row-state">
          <State view={view} />
          <span class="row-badges">
            <HandoffBadge handoff={view.handoff} />
            <UnreadBadge unread={view.unread} />
          </span>
        </div>
        <Subagents view={view} />
      </div>
    </li>
  );
});

function SessionName({ view }: { view: SessionView }) {
  const { agent, model, host, user, team, title, project, id } = view.session;
  return (
    <div class="row-who">
      <a class="row-name" href={sessionHash(id)} title={project ?? id} data-testid="open">
        <span class="agent" data-agent={agent}>
          {agent}
        </span>{" "}
        <span class="name">{sessionName(view)}</span>
      </a>
      <div class="row-sub">
        {title && <span class="title">{title}</span>}
        <span class="model">{model ?? "model unknown"}</span>
        {user && <span class="user">{user}</span>}
        {team && <span class="team">{team}</span>}
        {host && hasSeveralHosts.value && <span class="host">{host}</span>}
      </div>
    </div>
  );
}

/** The text below the bar: tokens, window, limit and calls left. */
function BarCaption({ view, main }: { view: SessionView; main: ThreadView | undefined }) {
  return (
    <div class="row-scale">
      <span data-testid="tokens">
        <b>{tokens(main?.sent ?? null)}</b> of {tokens(main?.window ?? null)}
      </span>
      <span class="limit-at">
        {view.limit_at === null ? "limit unknown" : `limit at ${shortPercent(view.limit_at)}`}
      </span>
      {view.calls_left !== null && view.calls_left > 0 && (
        <span class="left" data-testid="calls-left">
          about {plural(view.calls_left, "call")} left{countRange(view.calls_left_range)}
        </span>
      )}
    </div>
  );
}

function Percent({ main }: { main: ThreadView | undefined }) {
  const level = levelOf(main);
  return (
    <div class="row-percent">
      <span class="percent" data-testid="percent">
        {occupancy(main?.percent_raw ?? null)}
      </span>
      {level !== "unknown" && level !== "low" && (
        <span class="level" data-level={level} data-testid="level">
          {LEVEL_TEXTS[level]}
        </span>
      )}
      {main && isOverWindow(main) && (
        <span
          class="over"
          data-testid="over"
          title="more tokens were sent than the known window holds"
        >
          more than the window
        </span>
      )}
    </div>
  );
}

function State({ view }: { view: SessionView }) {
  const state = useComputed(() =>
    stateOf(sessionStore.get(view.session.id)?.value ?? view, now.value),
  ).value;
  const words = useComputed(() =>
    stateText(sessionStore.get(view.session.id)?.value ?? view, now.value),
  );
  const age = useComputed(() =>
    ago(lastCallAt(sessionStore.get(view.session.id)?.value ?? view), now.value),
  );
  return (
    <span class="state" data-state={state} data-testid="state">
      {state !== "measured" && <span class="state-word">{words}</span>}
      {state !== "stale" && <span class="age">{age}</span>}
    </span>
  );
}

function Subagents({ view }: { view: SessionView }) {
  const all = subagentThreads(view);
  if (all.length === 0) return null;
  const shown = all.slice(0, MAX_SUBAGENTS);
  return (
    <ul class="subagents" aria-label="Subagents">
      {shown.map((thread) => (
        <li key={thread.thread} data-testid="subagent" data-level={levelOf(thread)}>
          <span class="sub-name" title={thread.thread}>
            {thread.thread}
          </span>
          <Bar thread={thread} limitAt={limitPercent(thread)} small />
          <span class="sub-percent">{occupancy(thread.percent_raw)}</span>
        </li>
      ))}
      {all.length > shown.length && <li class="sub-more">{all.length - shown.length} more</li>}
    </ul>
  );
}
