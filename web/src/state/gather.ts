/** Gathers what comes in quick succession, so that the page is drawn a few times a second at most. */

export type Later = (run: () => void, ms: number) => void;

/** Draws in the next frame after a wait; a hidden page has no frames, and is drawn by the clock. */
const inAFrame: Later = (run, ms) => {
  const draw = () => (document.hidden ? run() : requestAnimationFrame(run));
  setTimeout(draw, ms);
};

/**
 * Gives a function that takes one item. The first goes through at once; what follows it within
 * `pause` milliseconds goes through together, the last of each key.
 */
export function gather<T>(
  key: (item: T) => string,
  take: (items: T[]) => void,
  pause: number,
  later: Later = inAFrame,
  now: () => number = () => performance.now(),
): (item: T) => void {
  const waiting = new Map<string, T>();
  let last = Number.NEGATIVE_INFINITY;
  let asked = false;
  const flush = () => {
    asked = false;
    last = now();
    const items = [...waiting.values()];
    waiting.clear();
    take(items);
  };
  return (item) => {
    waiting.set(key(item), item);
    if (asked) return;
    asked = true;
    later(flush, Math.max(0, last + pause - now()));
  };
}
