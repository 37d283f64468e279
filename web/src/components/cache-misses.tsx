/** The cache misses of a session, the latest first, each with its cost and what to do. */

import { useSignal } from "@preact/signals";
import type { ThreadMiss } from "../api-types";
import { count, dollars, duration, tokens } from "../format";
import { causeText } from "../reading";
import { MAX_FINDINGS, ShowAll } from "./show-all";

const MISS_ADVICE: Record<ThreadMiss["cause"], string> = {
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
  "dropped by the provider":
    "The prompt went on as it was: the provider had dropped its cache early.",
  unknown: "The cause is not recorded; providers drop caches early at times.",
};

interface Props {
  misses: ThreadMiss[];
  open: (thread: string, call: string) => void;
}

export function MissList({ misses, open }: Props) {
  const all = useSignal(false);
  const latest = [...misses].reverse();
  const shown = all.value ? latest : latest.slice(0, MAX_FINDINGS);
  return (
    <>
      <ul class="findings" data-testid="misses">
        {shown.map((miss, at) => (
          <li key={`${miss.thread}\n${miss.call}`} data-call={miss.call}>
            <p class="finding-figures">
              <b>{tokens(miss.tokens)}</b> paid again at{" "}
              <button type="button" class="link" onClick={() => open(miss.thread, miss.call)}>
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
      <ShowAll all={all} isLonger={misses.length > MAX_FINDINGS} />
    </>
  );
}

/** Whether no miss before has the same cause: its advice is shown once. */
function isFirstOfCause(misses: ThreadMiss[], at: number): boolean {
  return misses.findIndex(({ cause }) => cause === misses[at]?.cause) === at;
}
