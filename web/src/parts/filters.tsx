/** Search, filters and order of the overview. */

import { useComputed } from "@preact/signals";
import { board, filter, order, sort } from "../app";
import { plural } from "../format";
import { choices, type Filter, SORTS } from "../state/list";
import { Choice, Switch } from "./inputs";

/** The search box, for the key that goes there. */
export const SEARCH = "search";

const FIELDS = { agent: "all agents", project: "all projects", host: "all hosts" } as const;

export function Filters() {
  const set = (part: Partial<Filter>) => {
    filter.value = { ...filter.value, ...part };
  };
  return (
    <search class="filters" aria-label="Sessions">
      <label class="unseen" for={SEARCH}>
        Search
      </label>
      <input
        id={SEARCH}
        type="search"
        placeholder="Search  ( / )"
        autocomplete="off"
        spellcheck={false}
        value={filter.value.search}
        data-testid="search"
        onInput={(event) => set({ search: event.currentTarget.value })}
      />
      {(Object.keys(FIELDS) as (keyof typeof FIELDS)[]).map((field) => (
        <Field key={field} field={field} set={set} />
      ))}
      <Choice
        label="order"
        value={sort.value}
        of={SORTS}
        set={(to) => {
          sort.value = to;
        }}
        testid="sort"
        quiet
      />
      <Switch
        label="ended and older too"
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

/** A filter by one field; drawn anew only when its values change. */
function Field({ field, set }: FieldProps) {
  const values = useComputed(() => {
    board.version.value;
    return JSON.stringify(choices(board.views(), field));
  });
  const named = JSON.parse(values.value) as string[];
  const of = Object.fromEntries(named.map((value) => [value, value]));
  return (
    <Choice
      label={field}
      value={filter.value[field]}
      of={{ "": FIELDS[field], ...of }}
      set={(to) => set({ [field]: to })}
      testid={`filter-${field}`}
      quiet
    />
  );
}
