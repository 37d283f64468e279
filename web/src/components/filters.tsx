/** Search, filters and order of the overview. */

import { useComputed } from "@preact/signals";
import { filter, hasSeveralHosts, isFleet, order, sessionStore, sort } from "../app";
import { plural } from "../format";
import { distinctValues, type Filter, SORTS } from "../state/session-list";
import { Checkbox, Select } from "./inputs";

export const SEARCH_ID = "search";

const FIELDS = { agent: "all agents", project: "all projects", host: "all hosts" } as const;

export function Filters() {
  const set = (part: Partial<Filter>) => {
    filter.value = { ...filter.value, ...part };
  };
  return (
    <search class="filters" aria-label="Sessions">
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
      {(Object.keys(FIELDS) as (keyof typeof FIELDS)[])
        .filter((field) => field !== "host" || hasSeveralHosts.value || filter.value.host)
        .map((field) => (
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
        {plural(order.value.length, "session")}
      </output>
    </search>
  );
}

interface FieldProps {
  field: keyof typeof FIELDS;
  set: (part: Partial<Filter>) => void;
}

/** A filter by one field; redrawn only when its values change. */
function Field({ field, set }: FieldProps) {
  const values = useComputed(() => {
    sessionStore.version.value;
    return JSON.stringify(distinctValues(sessionStore.views(), field));
  });
  const named = JSON.parse(values.value) as string[];
  const of = Object.fromEntries(named.map((value) => [value, value]));
  return (
    <Select
      label={field}
      value={filter.value[field]}
      of={{ "": FIELDS[field], ...of }}
      set={(to) => set({ [field]: to })}
      testid={`filter-${field}`}
      quiet
    />
  );
}
