/** Keyboard shortcuts; ignored in text inputs and with a modifier key. */

import { filter, gaps, helpOpen, isFleet, order, overviewAddress } from "./app";
import { SEARCH_ID } from "./components/filters";
import { scrollToRow } from "./components/session-rows";
import { FLEET_HASH, go, route } from "./state/route";

const KEYS: Record<string, () => void> = {
  j: () => moveFocus(1),
  k: () => moveFocus(-1),
  "/": focusSearch,
  "?": () => {
    helpOpen.value = true;
  },
  o: () => go(overviewAddress.value),
  h: () => {
    if (!isFleet.value) go("#/history");
  },
  f: () => {
    if (isFleet.value) go(FLEET_HASH);
  },
};

export function listenForKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isDialogOpen()) return;
    const act = actionFor(event);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

/** Whether a dialog is open; read from the document, which is updated before the close event. */
function isDialogOpen(): boolean {
  return document.querySelector("dialog[open]") !== null;
}

function actionFor({ key, target }: KeyboardEvent): (() => void) | undefined {
  if (key === "Escape") return leaveInputOrView;
  if (isTextInput(target))
    return key === "Enter" && isSearch(target) ? () => moveFocus(1) : undefined;
  return KEYS[key];
}

function isTextInput(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.matches("input:not([type=checkbox]), textarea, select")
  );
}

function isSearch(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.id === SEARCH_ID;
}

/** Move the focus by some sessions in the list. */
function moveFocus(by: number): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>(".rows .row-name")];
  const here = links.indexOf(document.activeElement as HTMLAnchorElement);
  const next = here < 0 ? (by > 0 ? 0 : links.length - 1) : here + by;
  links[Math.min(links.length - 1, Math.max(0, next))]?.focus();
}

function focusSearch(): void {
  const box = () => document.getElementById(SEARCH_ID)?.focus();
  if (route.value.view === "overview") box();
  else goToOverview(box);
}

/** Go to the overview, and act when it is drawn. */
function goToOverview(act: () => void): void {
  addEventListener("hashchange", () => requestAnimationFrame(act), { once: true });
  go(overviewAddress.value);
}

/** Leave a text input, and clear the search; otherwise go back to the overview or the fleet. */
function leaveInputOrView(): void {
  const active = document.activeElement;
  if (isSearch(active)) filter.value = { ...filter.value, search: "" };
  if (isTextInput(active) && active instanceof HTMLElement) active.blur();
  else if (isFleet.value && route.value.view === "session") go(FLEET_HASH);
  else if (!isFleet.value && route.value.view !== "overview") backToOverview();
}

/** Go to the overview, and focus the row of the session that was open. */
function backToOverview(): void {
  const from = route.value;
  const id = from.view === "session" ? from.id : "";
  goToOverview(() => {
    if (!focusRow(id)) scrollToRow({ ids: order.value, gaps: gaps.value }, id);
    requestAnimationFrame(() => requestAnimationFrame(() => focusRow(id)));
  });
}

/** Focus the row of a session; returns whether it is drawn. */
function focusRow(id: string): boolean {
  const row = `[data-session="${CSS.escape(id)}"] .row-name`;
  const link = document.querySelector<HTMLElement>(row);
  link?.focus();
  return link !== null;
}
