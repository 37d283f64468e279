/** Filter and order of the overview as a part of its address. Pure. */

import { FILTER_FIELDS, type Filter, NO_FILTER, SORTS, type Sort } from "./session-list";

export interface ListOptions {
  filter: Filter;
  sort: Sort;
}

const DEFAULT_SORT: Sort = "need";
const FIELDS = ["search", ...FILTER_FIELDS] as const;

/** The hash of the overview; only what differs from the default is in it. */
export function overviewHash({ filter, sort }: ListOptions): string {
  const query = new URLSearchParams();
  for (const field of FIELDS) if (filter[field]) query.set(field, filter[field]);
  if (filter.past) query.set("past", "1");
  if (sort !== DEFAULT_SORT) query.set("sort", sort);
  const text = query.toString();
  return text ? `#/?${text}` : "#/";
}

/** The options in a hash; what is missing or invalid has its default. */
export function listOptions(hash: string): ListOptions {
  const query = new URLSearchParams(hash.split("?").slice(1).join("?"));
  const filter = { ...NO_FILTER, past: query.get("past") === "1" };
  for (const field of FIELDS) filter[field] = query.get(field) ?? "";
  const sort = query.get("sort") ?? "";
  return { filter, sort: Object.hasOwn(SORTS, sort) ? (sort as Sort) : DEFAULT_SORT };
}
