/** What fills a session's contexts: now, at each call, what of it is wasted. */

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { CacheMiss, ExplainedThread, Explanation, Waste } from "../api-types";
import { type Slice, slicesOf } from "../explanation/slices";
import { count, dollars, duration, percent, tokens } from "../format";
import { causeText } from "../reading";
import type { SessionDetail } from "../state/session-detail";
import { CategoryArea } from "./category-area";
import { Select } from "./inputs";
import { Swatch } from "./swatch";
import { type Column, Table } from "./table";
import { Treemap } from "./treemap";

/** Of waste, of misses. */
const MAX_LINES = 6;

export function ExplanationPanel({ detail }: { detail: SessionDetail }) {
  const explanation = detail.explanation.value;
  const failed = detail.explanationError.value;
  const chosen = useSignal("main");
  const threads = explanation?.threads ?? [];
  const thread = threads.find((one) => one.thread === chosen.value) ?? threads[0];
  return (
    <section class="panel explanation" aria-labelledby="explanation" data-testid="explanation">
      <div class="explanation-head">
        <h2 id="explanation">What fills it</h2>
        {threads.length > 1 && thread && (
          <Select
            label="thread"
            value={thread.thread}
            of={Object.fromEntries(threads.map((one) => [one.thread, one.thread]))}
            set={(to) => {
              chosen.value = to;
            }}
            testid="explained-thread"
          />
        )}
      </div>
      {explanation && thread ? (
        <ThreadExplanation
          key={thread.thread}
          thread={thread}
          names={explanation.category_names}
          open={(call) => detail.selectCall(thread.thread, call)}
        />
      ) : (
        <p class="quiet">{failed?.message ?? emptyText(explanation)}</p>
      )}
    </section>
  );
}

function emptyText(explanation: Explanation | null): string {
  if (!explanation) return "Reading the transcript ...";
  return explanation.problem
    ? `Unknown: ${explanation.problem}.`
    : "Unknown before the first call.";
}

interface ThreadProps {
  thread: ExplainedThread;
  names: string[];
  open: (call: string) => void;
}

function ThreadExplanation({ thread, names, open }: ThreadProps) {
  const slices = useMemo(() => slicesOf(thread, names), [thread, names]);
  return (
    <>
      {thread.sent === null ? (
        <p class="quiet">
          Unknown until the next reply: the context was compacted, cleared or rewound.
        </p>
      ) : (
        <>
          <StackedBar slices={slices} sent={thread.sent} />
          <div class="explanation-now">
            <div>
              <Categories slices={slices} sent={thread.sent} />
              <Notes thread={thread} />
            </div>
            <Treemap slices={slices} open={open} />
          </div>
        </>
      )}
      {thread.pending > 0 && (
        <p class="pending" data-testid="pending">
          About <b>{tokens(thread.pending)}</b> tokens more came in since the last call. This is an
          estimate; the figures above are what was sent.
        </p>
      )}
      <CategoryArea thread={thread} names={names} open={open} />
      <div class="explanation-costs">
        <WasteList waste={thread.waste} />
        <MissList misses={thread.misses} open={open} />
      </div>
    </>
  );
}

function StackedBar({ slices, sent }: { slices: Slice[]; sent: number }) {
  const words = slices.map((slice) => `${slice.name} ${percent(slice.share)}`).join(", ");
  return (
    <div
      class="stack"
      role="img"
      aria-label={`${count(sent)} tokens: ${words}`}
      data-testid="stack"
    >
      {slices.map((slice) => (
        <span
          key={slice.name}
          data-fill={slice.colour}
          style={{ "--share": `${slice.share}%` }}
          title={`${slice.name}: ${count(slice.tokens)} tokens, ${percent(slice.share)}`}
        />
      ))}
    </div>
  );
}

const COLUMNS: Column[] = [
  { name: "category" },
  { name: "tokens", figure: true },
  { name: "share", figure: true },
];

function Categories({ slices, sent }: { slices: Slice[]; sent: number }) {
  return (
    <Table label="Categories" columns={COLUMNS} testid="categories">
      {slices.map((slice) => (
        <tr key={slice.name} data-category={slice.name}>
          <td>
            <Swatch colour={slice.colour} /> {slice.name}
          </td>
          <td class="figure">{count(slice.tokens)}</td>
          <td class="figure">{percent(slice.share)}</td>
        </tr>
      ))}
      <tr data-category="sent">
        <td class="strong">sent</td>
        <td class="figure strong">{count(sent)}</td>
        <td class="figure" />
      </tr>
    </Table>
  );
}

/** Where the tokens of categories are that the client does not record. */
function Notes({ thread }: { thread: ExplainedThread }) {
  return (
    <ul class="notes">
      {thread.categories
        .filter(({ note }) => note)
        .map(({ name, note }) => (
          <li key={name}>
            {name}: {note}
          </li>
        ))}
    </ul>
  );
}

function WasteList({ waste }: { waste: Waste[] }) {
  const all = useSignal(false);
  const shown = all.value ? waste : waste.slice(0, MAX_LINES);
  return (
    <div>
      <h3>
        Waste <span class="amount">{count(waste.length)}</span>
      </h3>
      {waste.length === 0 && <p class="quiet">None found.</p>}
      <ul class="findings" data-testid="waste">
        {shown.map((one, at) => (
          <li key={at} data-kind={one.kind}>
            <p class="finding-figures">
              <b>{tokens(one.tokens)}</b> {one.kind}
              {one.cost !== null && <span> · {dollars(one.cost)} so far</span>}
            </p>
            <p>{one.advice}</p>
          </li>
        ))}
      </ul>
      <ShowAll all={all} isLonger={waste.length > MAX_LINES} />
    </div>
  );
}

const MISS_ADVICE: Record<CacheMiss["cause"], string> = {
  "idle longer than the cache lives":
    "The cache had expired. Go on sooner, or start a new session from a handoff after a long break.",
  "model switch": "Each model has a cache of its own. Switch models at the start of a task.",
  compaction: "A compaction makes a new prompt. Compact, or clear, between tasks.",
  clear: "A cleared context is a new prompt. This is paid once.",
  rewind: "A rewound context is read from where it was left; the rest was written again.",
  "context edit": "The client removed earlier results, so that the prompt after them changed.",
  resume: "A resumed session was sent as a new prompt. Go on in one session if you can.",
  "effort switch": "Another effort makes another prompt. Choose it at the start of a task.",
  "tools or instructions changed":
    "They come first in the prompt. Add tools, MCP servers and memory before you start.",
  "fast mode switch": "Fast mode makes another prompt. Choose it at the start of a task.",
  "request options changed": "The client sent other options with the prompt.",
  "dropped by the provider": "The prompt was the same: the provider had dropped its cache early.",
  unknown: "The cause is not recorded; providers drop caches early at times.",
};

function MissList({ misses, open }: { misses: CacheMiss[]; open: (call: string) => void }) {
  const all = useSignal(false);
  const latest = [...misses].reverse();
  const shown = all.value ? latest : latest.slice(0, MAX_LINES);
  return (
    <div>
      <h3>
        Cache misses <span class="amount">{count(misses.length)}</span>
      </h3>
      {misses.length === 0 && <p class="quiet">None found.</p>}
      <ul class="findings" data-testid="misses">
        {shown.map((miss, at) => (
          <li key={miss.call} data-call={miss.call}>
            <p class="finding-figures">
              <b>{tokens(miss.tokens)}</b> paid again at{" "}
              <button type="button" class="link" onClick={() => open(miss.call)}>
                call {count(miss.number)}
              </button>
              {miss.cost !== null && <span> · {dollars(miss.cost)} more</span>}
              {miss.idle_s !== null && <span> · after {duration(miss.idle_s)}</span>}
            </p>
            <p>
              <b>{causeText(miss)}.</b> {isFirstOfCause(shown, at) && MISS_ADVICE[miss.cause]}
            </p>
          </li>
        ))}
      </ul>
      <ShowAll all={all} isLonger={misses.length > MAX_LINES} />
    </div>
  );
}

/** Whether no miss before has the same cause: its advice is shown once. */
function isFirstOfCause(misses: CacheMiss[], at: number): boolean {
  return misses.findIndex(({ cause }) => cause === misses[at]?.cause) === at;
}

function ShowAll({ all, isLonger }: { all: { value: boolean }; isLonger: boolean }) {
  if (all.value || !isLonger) return null;
  return (
    <button
      type="button"
      class="more"
      onClick={() => {
        all.value = true;
      }}
    >
      Show all
    </button>
  );
}
