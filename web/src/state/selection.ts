/** The session in the pane beside the list, on a screen that is wide enough for one. */

import { signal } from "@preact/signals";

/** From here on there is a pane: a longer bar would not say more. */
const wide = matchMedia("(min-width: 1900px)");
/** Rows that the keyboard only passes are not loaded. */
const PASS_MS = 150;

export const hasPane = signal(wide.matches);
wide.addEventListener("change", () => {
  hasPane.value = wide.matches;
});

/** The session that was chosen last; null if none was. */
export const selected = signal<string | null>(null);

let timer: ReturnType<typeof setTimeout> | undefined;

/** Show a session in the pane, unless another one is chosen at once. */
export function select(id: string): void {
  clearTimeout(timer);
  timer = setTimeout(() => {
    selected.value = id;
  }, PASS_MS);
}
