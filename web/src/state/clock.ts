/** The current time as a signal, for ages. */

import { signal } from "@preact/signals";

const TICK_MS = 5_000;

export const now = signal(Date.now() / 1000);

/** Start the clock; calls `onWake` after the machine slept. */
export function startClock(onWake: () => void): void {
  setInterval(() => {
    const before = now.peek();
    now.value = Date.now() / 1000;
    if (now.peek() - before > (6 * TICK_MS) / 1000) onWake();
  }, TICK_MS);
}
