/** The bar of a thread: the track is the window, marks show the limit and the levels. */

import { shortPercent } from "../format";
import { barText, isOverWindow, levelOf, limitText, type Occupancy } from "../reading";

interface Props {
  thread: Occupancy | undefined;
  limitAt: number | null;
  small?: boolean;
}

export function Bar({ thread, limitAt, small = false }: Props) {
  return (
    <div
      {...ariaProps(thread, barText(thread, limitAt))}
      class={small ? "bar bar-small" : "bar"}
      data-level={levelOf(thread)}
      data-state={thread?.state ?? "unknown"}
      data-over={thread && isOverWindow(thread) ? "" : undefined}
      data-testid="bar"
    >
      <div class="bar-track">
        <div class="bar-fill" style={{ "--fill": `${thread?.percent ?? 0}%` }} />
      </div>
      {thread?.levels.map((level) => (
        <Tick key={level} at={level} {...levelTick(level, thread.pending_level)} />
      ))}
      {thread && limitAt !== null && (
        <Tick kind="limit" at={limitAt} words={limitText(thread, limitAt)} />
      )}
    </div>
  );
}

/** A meter must have a value: an unknown one is an image with a label. */
function ariaProps(thread: Occupancy | undefined, words: string) {
  if (!thread || thread.percent === null) return { role: "img", "aria-label": words } as const;
  return {
    role: "meter",
    "aria-label": "Context",
    "aria-valuemin": 0,
    "aria-valuemax": 100,
    "aria-valuenow": thread.percent,
    "aria-valuetext": words,
  } as const;
}

function levelTick(level: number, pending: number | null) {
  const words = `level ${shortPercent(level)}`;
  if (level !== pending) return { kind: "level", words } as const;
  return { kind: "pending", words: `${words} reached, its message waits for the agent` } as const;
}

function Tick({
  kind,
  at,
  words,
}: {
  kind: "level" | "pending" | "limit";
  at: number;
  words: string;
}) {
  const bounded = Math.min(100, Math.max(0, at));
  return <span class={`bar-${kind}`} style={{ "--at": `${bounded}%` }} title={words} />;
}
