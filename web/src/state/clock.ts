/** The time, as the page's words need it: ages are told in minutes. */

import { signal } from "@preact/signals";

const EVERY = 5_000;

export const now = signal(Date.now() / 1000);

/** Let the time go on; `woke` is called when the machine slept meanwhile. */
export function startClock(woke: () => void): void {
  setInterval(() => {
    const before = now.peek();
    now.value = Date.now() / 1000;
    if (now.peek() - before > (6 * EVERY) / 1000) woke();
  }, EVERY);
}
