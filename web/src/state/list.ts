/** Which sessions are listed, and in which order. Pure. */

import type { SessionView } from "../api-types";
import { heardAt, isLive, mainOf } from "../reading";

export type Sort = "fullest" | "limit" | "latest" | "project" | "agent";

export const SORTS: Record<Sort, string> = {
  fullest: "fullest first",
  limit: "nearest the limit",
  latest: "last heard",
  project: "project",
  agent: "agent",
};

export interface Filter {
  agent: string;
  project: string;
  host: string;
  search: string;
  /** Also sessions that have ended, or were not heard for a day. */
  past: boolean;
}

export const NO_FILTER: Filter = { agent: "", project: "", host: "", search: "", past: false };

/** The sessions that a filter lets through, in order. */
export function listed(
  views: Iterable<SessionView>,
  filter: Filter,
  sort: Sort,
  now: number,
): SessionView[] {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = [...views].filter(
    (view) => (filter.past || isLive(view, now)) && matches(view, filter, words),
  );
  return fitting.sort((a, b) => ORDERS[sort](a, b) || byName(a.session.id, b.session.id));
}

function matches(view: SessionView, filter: Filter, words: string[]): boolean {
  const { session } = view;
  if (filter.agent && session.agent !== filter.agent) return false;
  if (filter.project && session.project !== filter.project) return false;
  if (filter.host && session.host !== filter.host) return false;
  return words.length === 0 || found(view, words);
}

function found(view: SessionView, words: string[]): boolean {
  const { agent, project, host, model, title, id } = view.session;
  const text = [agent, project, host, model, title, id].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

type Order = (a: SessionView, b: SessionView) => number;

const ORDERS: Record<Sort, Order> = {
  fullest: (a, b) => down(mainOf(a)?.percent_raw, mainOf(b)?.percent_raw),
  limit: (a, b) => down(mainOf(a)?.percent_of_limit, mainOf(b)?.percent_of_limit),
  latest: (a, b) => heardAt(b) - heardAt(a),
  project: (a, b) => byName(a.session.project ?? "", b.session.project ?? ""),
  agent: (a, b) => byName(a.session.agent, b.session.agent),
};

/** Larger first; what is unknown comes last. */
function down(a: number | null | undefined, b: number | null | undefined): number {
  return (b ?? -1) - (a ?? -1);
}

function byName(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The values that a field of the sessions has, for a choice. */
export function choices(
  views: Iterable<SessionView>,
  field: "agent" | "project" | "host",
): string[] {
  const values = new Set<string>();
  for (const view of views) {
    const value = view.session[field];
    if (value) values.add(value);
  }
  return [...values].sort(byName);
}
