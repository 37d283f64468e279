/** How full a thread is, drawn: the window is the track, the limit and the levels are marks. */

import { place } from "../format";
import { barWords, type Fullness, levelOf, overshoots } from "../reading";

interface Props {
  thread: Fullness | undefined;
  limitAt: number | null;
  levels?: number[];
  small?: boolean;
}

export function Bar({ thread, limitAt, levels = [], small = false }: Props) {
  return (
    <div
      {...spoken(thread, barWords(thread, limitAt))}
      class={small ? "bar bar-small" : "bar"}
      data-level={levelOf(thread)}
      data-state={thread?.state ?? "unknown"}
      data-over={thread && overshoots(thread) ? "" : undefined}
      data-testid="bar"
    >
      <div class="bar-track">
        <div class="bar-fill" style={{ "--fill": `${thread?.percent ?? 0}%` }} />
      </div>
      {levels.map((level) => (
        <Tick key={level} kind="level" at={level} words={`level ${place(level)}`} />
      ))}
      {limitAt !== null && <Tick kind="limit" at={limitAt} words={`limit at ${place(limitAt)}`} />}
    </div>
  );
}

/** A meter has a value; what is unknown is a picture with its words. */
function spoken(thread: Fullness | undefined, words: string) {
  if (!thread || thread.percent === null) return { role: "img", "aria-label": words } as const;
  return {
    role: "meter",
    "aria-label": "Occupancy",
    "aria-valuemin": 0,
    "aria-valuemax": 100,
    "aria-valuenow": thread.percent,
    "aria-valuetext": words,
  } as const;
}

function Tick({ kind, at, words }: { kind: "level" | "limit"; at: number; words: string }) {
  const bounded = Math.min(100, Math.max(0, at));
  return <span class={`bar-${kind}`} style={{ "--at": `${bounded}%` }} title={words} />;
}
