/** A search in a session's transcripts: a form, and the passages that have all words. */

import { useSignal } from "@preact/signals";
import * as api from "../api";
import type { HitLine, Recall, RecallHit } from "../api-types";
import { moment } from "../format";
import { now } from "../state/clock";
import { Checkbox } from "./inputs";
import { Panel } from "./panel";

export function RecallSearch({ id }: { id: string }) {
  const words = useSignal("");
  const before = useSignal(false);
  const result = useSignal<Recall | null>(null);
  const state = useSignal("");
  const submit = async (event: Event) => {
    event.preventDefault();
    state.value = "Searching ...";
    try {
      result.value = await api.recall(id, words.value, before.value);
      state.value = describe(result.value);
    } catch (error) {
      if (!(error instanceof api.RequestFailed)) throw error;
      result.value = null;
      state.value = error.message;
    }
  };
  return (
    <Panel id="recall" title="Search in this session">
      <form class="recall-form" data-testid="recall" onSubmit={(event) => void submit(event)}>
        <input
          type="search"
          aria-label="words, or a phrase in quotation marks"
          placeholder="words, or a &quot;phrase&quot;"
          value={words.value}
          onInput={(event) => {
            words.value = event.currentTarget.value;
          }}
        />
        <button type="submit" disabled={!words.value.trim()}>
          Search
        </button>
        <Checkbox
          label="before the last compaction"
          on={before.value}
          set={(on) => {
            before.value = on;
          }}
        />
      </form>
      <output class="quiet" aria-live="polite">
        {state.value}
      </output>
      <ul class="recall-hits" data-testid="recall-hits">
        {result.value?.hits.map((hit) => (
          <Hit key={`${hit.path}:${hit.line}:${hit.lines[0]?.text}`} hit={hit} />
        ))}
      </ul>
    </Panel>
  );
}

function describe(result: Recall): string {
  if (result.hits.length === 0) return [...result.problems, "Nothing found."].join(" ");
  const phrase = result.words ? "No passage has this phrase; these have all of its words." : "";
  return `${phrase}${result.more ? " There is more: add a word." : ""}`.trim();
}

function Hit({ hit }: { hit: RecallHit }) {
  const role = hit.tool ? `${hit.role} of ${hit.tool}` : hit.role;
  const place = `${hit.path.replace(/^.*[/\\]/, "")}:${hit.line}`;
  return (
    <li>
      <p class="quiet">
        {role}
        {hit.at !== null && `, ${moment(hit.at, now.value)}`} <span title={hit.path}>{place}</span>
      </p>
      {hit.role === "result" && hit.command && <pre class="quiet">$ {hit.command}</pre>}
      <pre>
        {hit.lines.map((line) => (
          <Line key={line.text} line={line} />
        ))}
      </pre>
      {hit.result && <pre class="quiet">{hit.result}</pre>}
    </li>
  );
}

/** A line with its hits marked; the places count characters, not UTF-16 units. */
function Line({ line }: { line: HitLine }) {
  const characters = [...line.text];
  const parts = line.marks.map(([start, end], at) => (
    <>
      {characters.slice(line.marks[at - 1]?.[1] ?? 0, start).join("")}
      <mark>{characters.slice(start, end).join("")}</mark>
    </>
  ));
  return (
    <>
      {parts}
      {characters.slice(line.marks.at(-1)?.[1] ?? 0).join("")}
      {"\n"}
    </>
  );
}
