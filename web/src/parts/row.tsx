/** One session of the overview: everything that one wants to know of it at a glance. */

import { useComputed } from "@preact/signals";
import { memo } from "preact/compat";
import type { SessionView, ThreadRow } from "../api-types";
import { board, nameOf } from "../app";
import { ago, percent, place, plural, tokens } from "../format";
import {
  heardAt,
  LEVEL_WORDS,
  levelOf,
  limitPlace,
  mainOf,
  overshoots,
  stateOf,
  stateWords,
  subagentsOf,
} from "../reading";
import { now } from "../state/clock";
import { sessionHash } from "../state/route";
import { HandoffBadge, Unread } from "./badges";
import { Bar } from "./bar";
import { Spark } from "./spark";

/** So many subagents are drawn; the rest is counted. */
const MOST_SUBAGENTS = 4;

export const Row = memo(function Row({ id }: { id: string }) {
  const view = board.of(id)?.value;
  if (!view) return null;
  const main = mainOf(view);
  return (
    <li
      class="row"
      data-testid="session"
      data-session={id}
      data-level={levelOf(main)}
      data-agent={view.session.agent}
    >
      <div class="row-in">
        <Who view={view} />
        <div class="row-bar">
          <Bar thread={main} limitAt={view.limit_at} levels={view.levels} />
          <Scale view={view} main={main} />
        </div>
        <Percent main={main} />
        <div class="row-spark" title="trend of this cycle">
          <Spark trend={view.trend} />
        </div>
        <div class="row-state">
          <State view={view} />
          <span class="row-badges">
            <HandoffBadge handoff={view.handoff} />
            <Unread unread={view.unread} />
          </span>
        </div>
        <Subagents view={view} />
      </div>
    </li>
  );
});

function Who({ view }: { view: SessionView }) {
  const { agent, model, host, title, project, id } = view.session;
  return (
    <div class="row-who">
      <a class="row-name" href={sessionHash(id)} title={project ?? id} data-testid="open">
        <span class="agent" data-agent={agent}>
          {agent}
        </span>{" "}
        <span class="name">{nameOf(view)}</span>
      </a>
      <div class="row-sub">
        <span class="model">{model ?? "model unknown"}</span>
        {host && <span class="host">{host}</span>}
        {title && <span class="title">{title}</span>}
      </div>
    </div>
  );
}

/** The words below the bar: what is sent of which window, and where the limit is. */
function Scale({ view, main }: { view: SessionView; main: ThreadRow | undefined }) {
  return (
    <div class="row-scale">
      <span data-testid="tokens">
        <b>{tokens(main?.sent ?? null)}</b> of {tokens(main?.window ?? null)}
      </span>
      <span class="limit-at">
        {view.limit_at === null ? "limit unknown" : `limit at ${place(view.limit_at)}`}
      </span>
      {view.calls_left !== null && (
        <span class="left" data-testid="calls-left">
          about {plural(view.calls_left, "call")} left
        </span>
      )}
    </div>
  );
}

function Percent({ main }: { main: ThreadRow | undefined }) {
  const level = levelOf(main);
  return (
    <div class="row-percent">
      <span class="percent" data-testid="percent">
        {percent(main?.percent ?? null)}
      </span>
      {level !== "unknown" && (
        <span class="level" data-level={level} data-testid="level">
          {LEVEL_WORDS[level]}
        </span>
      )}
      {main && overshoots(main) && (
        <span class="over" data-testid="over" title="more was sent than the window holds">
          overshoot {percent(main.percent_raw)}
        </span>
      )}
    </div>
  );
}

function State({ view }: { view: SessionView }) {
  const state = useComputed(() =>
    stateOf(board.of(view.session.id)?.value ?? view, now.value),
  ).value;
  const words = useComputed(() => stateWords(board.of(view.session.id)?.value ?? view, now.value));
  const age = useComputed(() => ago(heardAt(board.of(view.session.id)?.value ?? view), now.value));
  return (
    <span class="state" data-state={state} data-testid="state">
      <span class="state-word">{words}</span>
      {state !== "stale" && <span class="age">{age}</span>}
    </span>
  );
}

function Subagents({ view }: { view: SessionView }) {
  const all = subagentsOf(view);
  if (all.length === 0) return null;
  const shown = all.slice(0, MOST_SUBAGENTS);
  return (
    <ul class="subagents" aria-label="Subagents">
      {shown.map((thread) => (
        <li key={thread.thread} data-testid="subagent" data-level={levelOf(thread)}>
          <span class="sub-name" title={thread.thread}>
            {thread.thread}
          </span>
          <Bar thread={thread} limitAt={limitPlace(thread)} small />
          <span class="sub-percent">
            {thread.percent === null ? "unknown" : percent(thread.percent)}
          </span>
        </li>
      ))}
      {all.length > shown.length && <li class="sub-more">{all.length - shown.length} more</li>}
    </ul>
  );
}
