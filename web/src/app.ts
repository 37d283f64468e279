/** State shared by the views: sessions, connection, filter, order. */

import { batch, computed, effect, type Signal, signal } from "@preact/signals";
import * as api from "./api";
import type { Caller, SessionView } from "./api-types";
import { SessionEventSource } from "./event-source";
import { occupancy } from "./format";
import { headline, mainThread } from "./reading";
import { now } from "./state/clock";
import { listOptions, overviewHash } from "./state/list-address";
import { goToFleetIfUnset, route } from "./state/route";
import {
  compareNeed,
  distinctValues,
  type Filter,
  groupStarts,
  isFiltered,
  NO_FILTER,
  type Sort,
  selectSessions,
} from "./state/session-list";
import { SessionStore } from "./state/session-store";

export const sessionStore = new SessionStore();
export const eventSource = new SessionEventSource(sessionStore);
export const filter = signal<Filter>(NO_FILTER);
export const sort = signal<Sort>("need");
export const helpOpen = signal(false);
/** Who uses the page of a fleet's server; null at a local daemon, and until it is known. */
export const caller = signal<Caller | null>(null);

/** Whether this is the page of a fleet's server, which has no files of the sessions. */
export const isFleet = computed(() => eventSource.daemon.value?.fleet === true);

/** Whether messages may be sent: at a fleet's server that needs the scope "act". */
export const mayAct = computed(
  () => !isFleet.value || caller.value?.scopes.includes("act") === true,
);

/** Why no message can reach a session of a fleet's server; null if one can. */
export function unreachableReason({ session }: SessionView): string | null {
  if (!isFleet.value) return null;
  if (session.machine === null) return "telemetry only";
  return session.receive === "all" ? null : "accepts no messages";
}

/** Whether messages may be sent to a session, and can reach it. */
export function isReachable(view: SessionView): boolean {
  return mayAct.value && unreachableReason(view) === null;
}

/** Start the page of a fleet's server: it shows the fleet unless the address names another view. */
export function openFleet(): void {
  goToFleetIfUnset();
  api.identity().then(
    (known) => {
      caller.value = known;
    },
    () => {}, // then nothing can be sent; the views report that the server does not answer
  );
}

/** Whether the view needs all sessions. */
export const showsAll = computed(() => route.value.view === "overview");

/** The address of the overview with the current filter and order. */
export const overviewAddress = computed(() =>
  overviewHash({ filter: filter.value, sort: sort.value }),
);

/** Take filter and order from an address of the overview. */
export function readOptions(hash: string): void {
  const options = listOptions(hash);
  batch(() => {
    filter.value = options.filter;
    sort.value = options.sort;
  });
}

/** Keep the address of the overview in sync with filter and order, without a new history entry. */
export function keepAddress(): void {
  effect(() => {
    const address = overviewAddress.value;
    if (route.value.view === "overview" && address !== (location.hash || "#/")) {
      history.replaceState(null, "", address);
    }
  });
}

/** Whether the list needs all sessions: the pages of a fleet are in the order of need. */
const needsAll = computed(() => sort.value !== "need" || isFiltered(filter.value));

/** Whether sessions of the list are not loaded. Those that ended are the last of a fleet. */
export const hasMore = computed(() => {
  const last = eventSource.pages.last.value;
  return last !== null && (filter.value.past || last.session.ended_at === null);
});

/** What the list shows of the sessions: all, the first by need, or those loaded so far. */
export const listedPart = computed<"all" | "first" | "so far">(() => {
  if (!hasMore.value) return "all";
  return needsAll.value ? "so far" : "first";
});

/** Load the sessions that the list needs, or the next ones. */
export function loadMore(every = needsAll.peek()): void {
  if (hasMore.peek()) void eventSource.pages.loadMore(every ? Infinity : 1, filter.peek().past);
}

/** The ids that the overview shows, in order. The array is replaced only when the order changes. */
export const order = signal<string[]>([]);

/** Those of them before which the overview leaves a gap, if it is sorted by need. */
export const gaps = signal<string[]>([]);

/** Rows change places at most this often; longer with many rows, and not while scrolling. */
const REORDER_INTERVAL_MS = 800;
const REORDER_ROW_MS = 2;
const AFTER_SCROLL_MS = 300;

/** Keep the order current: at once after a change of filter or sort, otherwise delayed. */
export function keepOrder(): void {
  let waits = false;
  let last = Number.NEGATIVE_INFINITY;
  let scrolled = Number.NEGATIVE_INFINITY;
  const settle = () => {
    last = performance.now();
    updateOrder();
  };
  const later = () => {
    const settled = last + REORDER_INTERVAL_MS + REORDER_ROW_MS * order.peek().length;
    const wait = Math.max(settled, scrolled + AFTER_SCROLL_MS) - performance.now();
    waits = wait > 0;
    if (waits) setTimeout(later, wait);
    else settle();
  };
  addEventListener("scroll", () => {
    scrolled = performance.now();
  });
  effect(() => {
    // A fleet's server has the sessions of the last 24 hours only.
    const daemon = eventSource.daemon.value;
    if (filter.value.past && daemon !== null && !daemon.fleet) eventSource.loadPast();
  });
  effect(() => {
    if (showsAll.value && needsAll.value && hasMore.value) loadMore();
  });
  effect(() => {
    filter.value;
    sort.value;
    sessionStore.loaded.value;
    eventSource.pages.amount.value;
    settle();
  });
  effect(() => {
    sessionStore.version.value;
    listedPart.value;
    now.value;
    if (!waits) later();
  });
}

function updateOrder(): void {
  const known = selectSessions(sessionStore.views(), filter.peek(), sort.peek(), now.peek());
  const last = listedPart.peek() === "first" ? eventSource.pages.last.peek() : null;
  // Between those that are known beyond the last page, others are missing.
  const views = last === null ? known : known.filter((view) => compareNeed(view, last) <= 0);
  batch(() => {
    replaceIfOther(
      order,
      views.map(({ session }) => session.id),
    );
    replaceIfOther(gaps, sort.peek() === "need" ? groupStarts(views) : []);
  });
}

function replaceIfOther(ids: Signal<string[]>, after: string[]): void {
  const before = ids.peek();
  const same = after.length === before.length && after.every((id, at) => id === before[at]);
  if (!same) ids.value = after;
}

/** The number of all known sessions: distinguishes "no sessions" from "no matches". */
export const sessionCount = computed(() => {
  sessionStore.version.value;
  return sessionStore.size;
});

/** Whether sessions of several hosts are known: only then a row names its host. */
export const hasSeveralHosts = computed(() => {
  sessionStore.version.value;
  return distinctValues(sessionStore.views(), "host").length > 1;
});

/** The most urgent live session, independent of the filter. */
const mostUrgent = computed<SessionView | undefined>(() => {
  sessionStore.version.value;
  return selectSessions(sessionStore.views(), NO_FILTER, "need", now.value)[0];
});

/** Keep the tab's title: a session's page names its session, the other views the most urgent one. */
export function keepTitle(): void {
  effect(() => {
    sessionStore.version.value;
    const here = route.value;
    const view = here.view === "session" ? sessionStore.get(here.id)?.value : mostUrgent.value;
    const name = view && headline(view.session);
    const percentRaw = view && mainThread(view)?.percent_raw;
    const full = percentRaw == null ? "" : `${occupancy(percentRaw)} `;
    document.title =
      name && (full || here.view === "session") ? `${full}${name} · Brimline` : "Brimline";
  });
}
