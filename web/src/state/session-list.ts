/** Filter and order of the session list. Pure. */

import type { SessionView } from "../api-types";
import { isLive, lastCallAt, mainThread } from "../reading";

export type Sort = "need" | "limit" | "cost" | "latest" | "title" | "project" | "agent";

export const SORTS: Record<Sort, string> = {
  need: "most urgent first",
  limit: "closest to the limit",
  cost: "highest cost",
  latest: "latest first",
  title: "title",
  project: "project",
  agent: "agent",
};

/** The facts of a session by which a list can be filtered, in the order of their inputs. */
export const FILTER_FIELDS = [
  "agent",
  "project",
  "branch",
  "team",
  "user",
  "host",
  "model",
  "version",
] as const;
export type FilterField = (typeof FILTER_FIELDS)[number];

export interface Filter extends Record<FilterField, string> {
  search: string;
  /** Also sessions that ended, or had no events for a day. */
  past: boolean;
}

export const NO_FILTER: Filter = {
  agent: "",
  project: "",
  branch: "",
  team: "",
  user: "",
  host: "",
  model: "",
  version: "",
  search: "",
  past: false,
};

/** Whether a filter selects sessions by what they are, rather than by their age. */
export function isFiltered(filter: Filter): boolean {
  return filter.search !== "" || FILTER_FIELDS.some((field) => filter[field] !== "");
}

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
  return fitting.sort((a, b) => COMPARATORS[sort](a, b) || compareNeed(a, b));
}

/** The order of the daemon's list by need. */
export function compareNeed(a: SessionView, b: SessionView): number {
  return byNeed(a, b) || compareText(a.session.id, b.session.id);
}

/** The sessions that begin a group of a list by need: what needs something, is active, is idle. */
export function groupStarts(views: SessionView[]): string[] {
  const starts = views.filter((view, at) => at > 0 && view.rank[0] !== views[at - 1]?.rank[0]);
  return starts.map((view) => view.session.id);
}

function matches(view: SessionView, filter: Filter, words: string[]): boolean {
  const fits = FILTER_FIELDS.every(
    (field) => !filter[field] || factOf(view, field) === filter[field],
  );
  if (!fits) return false;
  return words.length === 0 || hasWords(view, words);
}

/** A fact of a session; its branch has the project before it, as nearly all have a `main`. */
function factOf(view: SessionView, field: FilterField): string | null {
  if (field !== "branch") return view.session[field];
  const branch = mainThread(view)?.branch;
  if (!branch) return null;
  return view.session.project === null ? branch : `${view.session.project}: ${branch}`;
}

function hasWords(view: SessionView, words: string[]): boolean {
  const { agent, project, host, model, title, id, user, team } = view.session;
  const text = [agent, project, host, model, title, id, user, team].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

type Comparator = (a: SessionView, b: SessionView) => number;

const COMPARATORS: Record<Sort, Comparator> = {
  need: byNeed,
  limit: (a, b) =>
    compareDescending(mainThread(a)?.percent_of_limit, mainThread(b)?.percent_of_limit),
  cost: (a, b) => compareDescending(a.cost, b.cost),
  latest: (a, b) => lastCallAt(b) - lastCallAt(a),
  title: (a, b) => compareTitles(a.session.title, b.session.title),
  project: (a, b) => compareText(a.session.project ?? "", b.session.project ?? ""),
  agent: (a, b) => compareText(a.session.agent, b.session.agent),
};

/** The daemon's order: what needs something, what is active, what is idle. */
function byNeed(a: SessionView, b: SessionView): number {
  const at = a.rank.findIndex((part, place) => part !== b.rank[place]);
  return at < 0 ? 0 : (a.rank[at] ?? 0) - (b.rank[at] ?? 0);
}

/** Without regard to case, no title last. */
function compareTitles(a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return compareText(a.toLowerCase(), b.toLowerCase());
}

/** Larger first, unknown last. */
function compareDescending(a: number | null | undefined, b: number | null | undefined): number {
  return (b ?? -1) - (a ?? -1);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The distinct values of a field, sorted. */
export function distinctValues(views: Iterable<SessionView>, field: FilterField): string[] {
  const values = new Set<string>();
  for (const view of views) {
    const value = factOf(view, field);
    if (value) values.add(value);
  }
  return [...values].sort(compareText);
}
