/** What the keys do. Nothing while one writes, nor with a modifier held. */

import { filter, helpOpen } from "./app";
import { SEARCH } from "./parts/filters";
import { go, route } from "./state/route";

const KEYS: Record<string, () => void> = {
  j: () => step(1),
  k: () => step(-1),
  "/": search,
  "?": () => {
    helpOpen.value = true;
  },
  o: () => go("#/"),
  h: () => go("#/history"),
};

export function followKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || asks()) return;
    const act = actOf(event);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

/** Whether a dialog has the keys; the document knows that it closed before its event says so. */
function asks(): boolean {
  return document.querySelector("dialog[open]") !== null;
}

function actOf({ key, target }: KeyboardEvent): (() => void) | undefined {
  if (key === "Escape") return leave;
  if (writes(target)) return key === "Enter" && isSearch(target) ? () => step(1) : undefined;
  return KEYS[key];
}

function writes(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.matches("input:not([type=checkbox]), textarea, select")
  );
}

function isSearch(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.id === SEARCH;
}

/** Move the focus to the session below or above the one that has it. */
function step(by: number): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>(".rows .row-name")];
  const here = links.indexOf(document.activeElement as HTMLAnchorElement);
  const next = here < 0 ? (by > 0 ? 0 : links.length - 1) : here + by;
  links[Math.min(links.length - 1, Math.max(0, next))]?.focus();
}

function search(): void {
  const box = () => document.getElementById(SEARCH)?.focus();
  if (route.value.view === "overview") box();
  else toSessions(box);
}

/** To all sessions; what is done there comes when they are drawn. */
function toSessions(act: () => void): void {
  addEventListener("hashchange", () => requestAnimationFrame(act), { once: true });
  go("#/");
}

/** Out of what one writes in, the search with its words; else back to all sessions. */
function leave(): void {
  const active = document.activeElement;
  if (isSearch(active)) filter.value = { ...filter.value, search: "" };
  if (writes(active) && active instanceof HTMLElement) active.blur();
  else if (route.value.view !== "overview") back();
}

/** To all sessions; who comes from one is on its row again. */
function back(): void {
  const from = route.value;
  const id = from.view === "session" ? CSS.escape(from.id) : "";
  toSessions(() =>
    document.querySelector<HTMLElement>(`[data-session="${id}"] .row-name`)?.focus(),
  );
}
