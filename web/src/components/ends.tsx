/** What stops a session if it goes on, the nearest first, and what it took so far. */

import type { End, SessionView, Timeline } from "../api-types";
import { countRange, dollars, duration, UNKNOWN } from "../format";
import { endText, noForecastReason, secondsSinceFirstCall } from "../reading";
import { now } from "../state/clock";

interface Props {
  view: SessionView;
  timeline: Timeline | null;
}

export function Ends({ view, timeline }: Props) {
  const seconds = timeline && secondsSinceFirstCall(view, timeline.calls);
  const loaded = (words: string) => (timeline ? words : "...");
  return (
    <div class="ends">
      {view.ends.length > 0 && (
        <ol aria-label="What stops it first">
          {view.ends.map((end) => (
            <li key={end.kind} data-end={end.kind} data-urgent={end.is_urgent || undefined}>
              <span class="end-kind">{end.kind}</span> {endText(end, now.value)}
              <Remark end={end} view={view} />
            </li>
          ))}
        </ol>
      )}
      <dl data-testid="key-figures">
        <div title="an estimate by list prices, with all subagents">
          <dt class="end-kind">cost</dt>
          <dd data-figure="cost">{loaded(dollars(timeline?.cost ?? null))}</dd>
        </div>
        <div title="from the first call to the last event">
          <dt class="end-kind">duration</dt>
          <dd data-figure="duration">{loaded(seconds === null ? UNKNOWN : duration(seconds))}</dd>
        </div>
      </dl>
    </div>
  );
}

/** The range of the forecast, or why there is none. */
function Remark({ end, view }: { end: End; view: SessionView }) {
  if (end.kind !== "compaction") return null;
  const range = countRange(view.calls_left_range);
  if (view.calls_left !== null && !range) return null;
  const words =
    view.calls_left === null ? noForecastReason(view) : `${range} calls, 8 times out of 10`;
  return (
    <span class="why" data-testid="forecast">
      {words}
    </span>
  );
}
