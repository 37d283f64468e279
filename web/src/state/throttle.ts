/** Throttle by key, so that the page is redrawn a few times a second at most. */

export type Schedule = (run: () => void, ms: number) => void;

/** Runs in the first frame after a delay; a hidden page has no frames, so there at once. */
const onNextFrame: Schedule = (run, ms) => {
  const draw = () => (document.hidden ? run() : requestAnimationFrame(run));
  setTimeout(draw, ms);
};

/**
 * Returns a function that takes one item. The first is delivered at once; those that follow within
 * `intervalMs` are delivered together, the last of each key.
 */
export function throttleByKey<T>(
  key: (item: T) => string,
  deliver: (items: T[]) => void,
  intervalMs: number,
  schedule: Schedule = onNextFrame,
  now: () => number = () => performance.now(),
): (item: T) => void {
  const pending = new Map<string, T>();
  let last = Number.NEGATIVE_INFINITY;
  let isScheduled = false;
  const flush = () => {
    isScheduled = false;
    last = now();
    const items = [...pending.values()];
    pending.clear();
    deliver(items);
  };
  return (item) => {
    pending.set(key(item), item);
    if (isScheduled) return;
    isScheduled = true;
    schedule(flush, Math.max(0, last + intervalMs - now()));
  };
}
