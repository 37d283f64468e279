/** One session of the overview. */

import { useComputed } from "@preact/signals";
import { memo } from "preact/compat";
import type { SessionView, ThreadView } from "../api-types";
import { sessionStore } from "../app";
import { ago, countRange, occupancy, percent, plural, tokens } from "../format";
import {
  callsLeftText,
  headline,
  isOverWindow,
  LEVEL_TEXTS,
  lastCallAt,
  levelOf,
  mainThread,
  stateOf,
  stateText,
  subagentThreads,
} from "../reading";
import { now } from "../state/clock";
import { go, sessionHash } from "../state/route";
import { hasPane, select, selected } from "../state/selection";
import { AboutLine } from "./about-line";
import { HandoffBadge, SessionProblem, UnreadBadge } from "./badges";
import { Bar } from "./bar";
import { NeedText } from "./need-text";
import { Sparkline } from "./sparkline";

interface Props {
  id: string;
  /** Its place in the list, from 1, and the length of the list: not all rows are drawn. */
  place: number;
  of: number;
  /** The gap above it, in pixels. */
  gap: number;
}

export const OverviewRow = memo(function Row({ id, place, of, gap }: Props) {
  const isSelected = useComputed(() => hasPane.value && selected.value === id).value;
  const view = sessionStore.get(id)?.value;
  if (!view) return null;
  const main = mainThread(view);
  return (
    <li
      class="row"
      data-selected={isSelected || undefined}
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
        </div>
        <Percent main={main} />
        <div class="row-spark" title="tokens sent in this cycle; the line above is the limit">
          {view.trend.length > 0 && <Sparkline trend={view.trend} limit={main?.limit ?? null} />}
        </div>
        <div class="row-state">
          <State view={view} />
          <span class="row-badges">
            <HandoffBadge handoff={view.handoff} />
            <UnreadBadge unread={view.unread} />
          </span>
        </div>
        {(view.need || view.session.problem) && (
          <div class="row-need">
            <NeedText need={view.need} />
            <SessionProblem problem={view.session.problem} />
          </div>
        )}
      </div>
    </li>
  );
});

/** With a pane, a click shows the session there; Enter, as a click without a pointer, opens it. */
function selectByPointer(event: MouseEvent, id: string): void {
  const isPlain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
  if (!hasPane.value || !isPlain || event.detail === 0) return;
  event.preventDefault();
  select(id);
}

function SessionName({ view }: { view: SessionView }) {
  const { title, project, id } = view.session;
  return (
    <div class="row-who">
      <a
        class="row-name"
        href={sessionHash(id)}
        title={title ?? project ?? id}
        onClick={(event) => selectByPointer(event, id)}
        onDblClick={() => go(sessionHash(id))}
        onFocus={() => select(id)}
        data-testid="open"
      >
        {headline(view.session)}
      </a>
      <AboutLine session={view.session} />
    </div>
  );
}

/** The text below the bar: tokens, window, how near the limit is, subagents, and calls left. */
function BarCaption({ view, main }: { view: SessionView; main: ThreadView | undefined }) {
  return (
    <div class="row-scale">
      <span data-testid="tokens">
        <b>{tokens(main?.sent ?? null)}</b> of {tokens(main?.window ?? null)}
      </span>
      {main && isOverWindow(main) ? (
        <span
          class="over"
          data-testid="over"
          title="more tokens were sent than the known window holds"
        >
          more than the window
        </span>
      ) : (
        <span data-testid="of-limit">of limit {percent(main?.percent_of_limit ?? null)}</span>
      )}
      <Subagents view={view} />
      <span class="left" data-testid="calls-left" title={rangeText(view.calls_left_range)}>
        {callsLeftText(view)}
      </span>
    </div>
  );
}

/** How many subagents a session has, and the occupancy of the fullest. */
function Subagents({ view }: { view: SessionView }) {
  const threads = subagentThreads(view);
  if (threads.length === 0) return null;
  const fullest = threads.reduce((most, thread) =>
    (thread.percent_raw ?? -1) > (most.percent_raw ?? -1) ? thread : most,
  );
  return (
    <span class="subagents" data-testid="subagents" data-level={levelOf(fullest)}>
      {plural(threads.length, "subagent")} {threads.length > 1 && "up to "}
      {occupancy(fullest.percent_raw)}
    </span>
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
