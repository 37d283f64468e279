/** What fills a session's context, and what of it is wasted. */

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { ExplainedThread, Explanation, WasteTotal } from "../api-types";
import { type Slice, slicesOf } from "../explanation/slices";
import { count, dollars, percent, plural, tokens } from "../format";
import type { SessionDetail } from "../state/session-detail";
import { Select } from "./inputs";
import { Panel } from "./panel";
import { MAX_FINDINGS, ShowAll } from "./show-all";
import { Swatch } from "./swatch";
import { SystemParts } from "./system-parts";
import { Treemap } from "./treemap";

export function ExplanationPanel({ detail }: { detail: SessionDetail }) {
  const explanation = detail.explanation.value;
  const failed = detail.explanationError.value;
  const threads = explanation?.threads ?? [];
  const thread = detail.explainedThread.value;
  return (
    <Panel
      id="explanation"
      title="What fills it"
      amount={thread?.sent != null ? `${count(thread.sent)} tokens` : undefined}
      testid="explanation"
      tools={
        thread &&
        threads.length > 1 && (
          <Select
            label="thread"
            value={thread.thread}
            of={Object.fromEntries(threads.map((one) => [one.thread, one.thread]))}
            set={(to) => {
              detail.thread.value = to;
            }}
            testid="explained-thread"
          />
        )
      }
    >
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
    </Panel>
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
          <Treemap slices={slices} open={open} />
          <Categories slices={slices} />
          <Notes thread={thread} />
          <SystemParts parts={thread.system_parts} answeredAt={thread.answered_at} />
        </>
      )}
      {thread.pending > 0 && (
        <p class="pending" data-testid="pending">
          About <b>{tokens(thread.pending)}</b> tokens more came in since the last call. This is an
          estimate; the figures above are what was sent.
        </p>
      )}
      {thread.waste_total && (
        <details class="finding-list">
          <summary>
            Waste {tokens(thread.waste_total.tokens)} tokens,{" "}
            {plural(thread.waste_total.findings, "finding")}
          </summary>
          <WasteList thread={thread} total={thread.waste_total} />
        </details>
      )}
    </>
  );
}

/** The legend of the treemap, with the figures of each category. */
function Categories({ slices }: { slices: Slice[] }) {
  return (
    <ul class="categories" aria-label="Categories" data-testid="categories">
      {slices.map((slice) => (
        <li key={slice.name} data-category={slice.name}>
          <Swatch colour={slice.colour} /> <span class="category-name">{slice.name}</span>{" "}
          <b>{count(slice.tokens)}</b> <span class="quiet">{percent(slice.share)}</span>
        </li>
      ))}
    </ul>
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

/** What to do about the most of it, each finding that is worth a line, and the sum of the others. */
function WasteList({ thread, total }: { thread: ExplainedThread; total: WasteTotal }) {
  const all = useSignal(false);
  const shown = all.value ? thread.waste : thread.waste.slice(0, MAX_FINDINGS);
  return (
    <>
      <p>{total.remedy}</p>
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
      <ShowAll all={all} isLonger={thread.waste.length > MAX_FINDINGS} />
      {total.small > 0 && (
        <p class="quiet" data-testid="small-waste">
          {plural(total.small, "small finding")}: {tokens(total.small_tokens)} tokens
        </p>
      )}
    </>
  );
}
