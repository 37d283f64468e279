/** Search, filters and order of the overview. */

import { useComputed } from "@preact/signals";
import { filter, isFleet, listedPart, loadMore, order, sessionStore, sort } from "../app";
import { plural } from "../format";
import {
  distinctValues,
  FILTER_FIELDS,
  type Filter,
  type FilterField,
  SORTS,
} from "../state/session-list";
import { Checkbox, Select } from "./inputs";

export const SEARCH_ID = "search";

/** What the list has: 12 sessions, 200 most urgent sessions, 3 sessions so far. */
function shownText(): string {
  const amount = order.value.length;
  const part = listedPart.value;
  if (part === "first") return plural(amount, "most urgent session");
  return `${plural(amount, "session")}${part === "so far" ? " so far" : ""}`;
}

const ALL: Record<FilterField, string> = {
  agent: "all agents",
  project: "all projects",
  branch: "all branches",
  team: "all teams",
  user: "all users",
  host: "all hosts",
  model: "all models",
  version: "all versions",
};
/** Those that have an input even if all sessions are the same, or if they differ. */
const ALWAYS: readonly FilterField[] = ["agent", "project"];
const IF_SEVERAL: readonly FilterField[] = ["team", "user", "host"];

export function Filters() {
  const set = (part: Partial<Filter>) => {
    filter.value = { ...filter.value, ...part };
  };
  return (
    // Sessions that are not loaded may have other values to choose from.
    <search class="filters" aria-label="Sessions" onFocusCapture={() => loadMore(true)}>
      <label class="unseen" for={SEARCH_ID}>
        Search
      </label>
      <input
        id={SEARCH_ID}
        type="search"
        placeholder="Search  ( / )"
        autocomplete="off"
        spellcheck={false}
        value={filter.value.search}
        data-testid="search"
        onInput={(event) => set({ search: event.currentTarget.value })}
      />
      {FILTER_FIELDS.map((field) => (
        <Field key={field} field={field} set={set} />
      ))}
      <Select
        label="order"
        value={sort.value}
        of={SORTS}
        set={(to) => {
          sort.value = to;
        }}
        testid="sort"
        quiet
      />
      <Checkbox
        label={isFleet.value ? "ended" : "ended and older"}
        on={filter.value.past}
        set={(past) => set({ past })}
        testid="past"
      />
      <output class="shown" data-testid="shown">
        {shownText()}
      </output>
    </search>
  );
}

interface FieldProps {
  field: FilterField;
  set: (part: Partial<Filter>) => void;
}

/** A filter by one field, if there is a choice or one is made; redrawn when its values change. */
function Field({ field, set }: FieldProps) {
  const values = useComputed(() => {
    sessionStore.version.value;
    return JSON.stringify(distinctValues(sessionStore.views(), field));
  });
  const named = JSON.parse(values.value) as string[];
  const chosen = filter.value[field];
  const hasChoice = ALWAYS.includes(field) || (IF_SEVERAL.includes(field) && named.length > 1);
  if (!hasChoice && !chosen) return null;
  if (chosen && !named.includes(chosen)) named.push(chosen);
  const of = Object.fromEntries(named.map((value) => [value, value]));
  return (
    <Select
      label={field}
      value={chosen}
      of={{ "": ALL[field], ...of }}
      set={(to) => set({ [field]: to })}
      testid={`filter-${field}`}
      quiet
    />
  );
}
