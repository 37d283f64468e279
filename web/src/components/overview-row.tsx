/** One session of the overview. */

import { useComputed } from "@preact/signals";
import { memo } from "preact/compat";
import type { SessionView, ThreadView } from "../api-types";
import { sessionStore } from "../app";
import { ago, countRange, occupancy, percent, plural, tokens } from "../format";
import {
  headline,
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
import { AboutLine } from "./about-line";
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
  /** The gap above it, in pixels. */
  gap: number;
}

export const OverviewRow = memo(function Row({ id, place, of, gap }: Props) {
  const view = sessionStore.get(id)?.value;
  if (!view) return null;
  const main = mainThread(view);
  return (
    <li
      class="row"
      data-gap={gap > 0 ? "" : undefined}
      style={gap > 0 ? { marginTop: `${gap}px` } : undefined}
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
  const { title, project, id } = view.session;
  return (
    <div class="row-who">
      <a class="row-name" href={sessionHash(id)} title={title ?? project ?? id} data-testid="open">
        {headline(view.session)}
      </a>
      <AboutLine session={view.session} />
    </div>
  );
}

/** The text below the bar: tokens, window, how near the limit is, and calls left. */
function BarCaption({ view, main }: { view: SessionView; main: ThreadView | undefined }) {
  return (
    <div class="row-scale">
      <span data-testid="tokens">
        <b>{tokens(main?.sent ?? null)}</b> of {tokens(main?.window ?? null)}
      </span>
      <span data-testid="of-limit">of limit {percent(main?.percent_of_limit ?? null)}</span>
      {view.calls_left !== null && view.calls_left > 0 && (
        <span class="left" data-testid="calls-left" title={rangeText(view.calls_left_range)}>
          about {plural(view.calls_left, "call")} left
        </span>
      )}
    </div>
  );
}

function rangeText(range: number[] | null): string | undefined {
  const ends = countRange(range);
  return ends ? `${ends} calls, 8 times out of 10` : undefined;
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
