/** Filter and order of the session list. Pure. */

import type { SessionView } from "../api-types";
import { isActive, isLive, lastCallAt, mainThread } from "../reading";

export type Sort = "fullest" | "limit" | "latest" | "project" | "agent";

export const SORTS: Record<Sort, string> = {
  fullest: "fullest first",
  limit: "closest to the limit",
  latest: "latest first",
  project: "project",
  agent: "agent",
};

export interface Filter {
  agent: string;
  project: string;
  host: string;
  search: string;
  /** Also sessions that ended, or had no events for a day. */
  past: boolean;
}

export const NO_FILTER: Filter = { agent: "", project: "", host: "", search: "", past: false };

/** Orders by a figure: the sessions that are at work come before the idle ones. */
const ACTIVE_FIRST: readonly Sort[] = ["fullest", "limit"];

/** The sessions that match a filter, in order. */
export function selectSessions(
  views: Iterable<SessionView>,
  filter: Filter,
  sort: Sort,
  now: number,
): SessionView[] {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = [...views].filter(
    (view) => (filter.past || isLive(view, now)) && matches(view, filter, words),
  );
  const idle = (view: SessionView) => Number(ACTIVE_FIRST.includes(sort) && !isActive(view, now));
  return fitting.sort(
    (a, b) =>
      idle(a) - idle(b) || COMPARATORS[sort](a, b) || compareText(a.session.id, b.session.id),
  );
}

function matches(view: SessionView, filter: Filter, words: string[]): boolean {
  const { session } = view;
  if (filter.agent && session.agent !== filter.agent) return false;
  if (filter.project && session.project !== filter.project) return false;
  if (filter.host && session.host !== filter.host) return false;
  return words.length === 0 || hasWords(view, words);
}

function hasWords(view: SessionView, words: string[]): boolean {
  const { agent, project, host, model, title, id } = view.session;
  const text = [agent, project, host, model, title, id].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

type Comparator = (a: SessionView, b: SessionView) => number;

const COMPARATORS: Record<Sort, Comparator> = {
  fullest: (a, b) => compareDescending(mainThread(a)?.percent_raw, mainThread(b)?.percent_raw),
  limit: (a, b) =>
    compareDescending(mainThread(a)?.percent_of_limit, mainThread(b)?.percent_of_limit),
  latest: (a, b) => lastCallAt(b) - lastCallAt(a),
  project: (a, b) => compareText(a.session.project ?? "", b.session.project ?? ""),
  agent: (a, b) => compareText(a.session.agent, b.session.agent),
};

/** Larger first, unknown last. */
function compareDescending(a: number | null | undefined, b: number | null | undefined): number {
  return (b ?? -1) - (a ?? -1);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The distinct values of a field, sorted. */
export function distinctValues(
  views: Iterable<SessionView>,
  field: "agent" | "project" | "host",
): string[] {
  const values = new Set<string>();
  for (const view of views) {
    const value = view.session[field];
    if (value) values.add(value);
  }
  return [...values].sort(compareText);
}
