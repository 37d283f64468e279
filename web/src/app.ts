/** What the views share: the sessions, the connection, and what is listed of them. */

import { computed, effect, signal } from "@preact/signals";
import type { SessionView } from "./api-types";
import { percent } from "./format";
import { Live } from "./live";
import { mainOf } from "./reading";
import { Board } from "./state/board";
import { now } from "./state/clock";
import { type Filter, listed, NO_FILTER, type Sort } from "./state/list";

export const board = new Board();
export const live = new Live(board);
export const filter = signal<Filter>(NO_FILTER);
export const sort = signal<Sort>("fullest");
export const helpOpen = signal(false);

/** The ids that the overview shows, in order. An order that stays is the same array. */
export const order = signal<string[]>([]);

/** Rows do not jump about more often than this and so much for each row; milliseconds. */
const SETTLE = 800;
const SETTLE_ROW = 2;
/** Nor so soon after one scrolled. */
const STILL = 300;

/** Keep the order true: at once when somebody chose another, else a little after a change. */
export function followOrder(): void {
  let waits = false;
  let last = Number.NEGATIVE_INFINITY;
  let scrolled = Number.NEGATIVE_INFINITY;
  const settle = () => {
    last = performance.now();
    arrange();
  };
  const later = () => {
    const settled = last + SETTLE + SETTLE_ROW * order.peek().length;
    const wait = Math.max(settled, scrolled + STILL) - performance.now();
    waits = wait > 0;
    if (waits) setTimeout(later, wait);
    else settle();
  };
  addEventListener("scroll", () => {
    scrolled = performance.now();
  });
  effect(() => {
    if (filter.value.past) live.reachBack();
  });
  effect(() => {
    filter.value;
    sort.value;
    board.known.value;
    settle();
  });
  effect(() => {
    board.version.value;
    now.value;
    if (!waits) later();
  });
}

function arrange(): void {
  const views = listed(board.views(), filter.peek(), sort.peek(), now.peek());
  const ids = views.map((view) => view.session.id);
  const before = order.peek();
  const same = ids.length === before.length && ids.every((id, at) => id === before[at]);
  if (!same) order.value = ids;
}

/** Sessions of any kind that there are: by it one tells "none at all" from "none that fit". */
export const total = computed(() => {
  board.version.value;
  return board.size;
});

/** The fullest live session, whatever is listed. */
const fullest = computed<SessionView | undefined>(() => {
  board.version.value;
  return listed(board.views(), NO_FILTER, "fullest", now.value)[0];
});

/** Name the fullest session in the window's title, so that it is seen from another tab. */
export function followTitle(): void {
  effect(() => {
    document.title = titleOf(fullest.value);
  });
}

export function titleOf(view: SessionView | undefined): string {
  const main = view && mainOf(view);
  if (!view || !main || main.percent === null) return "Brimline";
  return `${percent(main.percent)} ${nameOf(view)} · Brimline`;
}

/** What a session is called: its project's folder, else its title, else its id. */
export function nameOf(view: SessionView): string {
  const { project, title, id } = view.session;
  return (project && folder(project)) || title || id;
}

function folder(path: string): string {
  return path.split("/").filter(Boolean).at(-1) ?? path;
}
