/** What a session is, and its reading with the origin of each figure. */

import type { ComponentChildren } from "preact";
import { sessionPath } from "../api";
import type { PromptCache, SessionView } from "../api-types";
import { ago, count, percent, tokens, UNKNOWN } from "../format";
import { cacheText, mainThread, quotaText } from "../reading";
import { now } from "../state/clock";
import { FoldedPanel } from "./panel";

const CACHE_ORIGINS: Record<PromptCache["origin"], string> = {
  reported: "reported by the client",
  computed: "computed from the last call and the cache's lifetime",
};

/** What the session is. */
export function SessionFacts({ view }: { view: SessionView }) {
  const { session } = view;
  const quotas = view.quotas && quotaText(view.quotas, now.value);
  return (
    <FoldedPanel id="facts" title="Session" testid="session-facts">
      <dl class="facts">
        <Fact name="model">{session.model ?? UNKNOWN}</Fact>
        {view.quotas && quotas && (
          <Fact name="quota" why={`of the account, reported ${ago(view.quotas.at, now.value)}`}>
            {quotas}
          </Fact>
        )}
        {view.prompt_cache && (
          <Fact name="prompt cache" why={CACHE_ORIGINS[view.prompt_cache.origin]}>
            {cacheText(view.prompt_cache, now.value)}
          </Fact>
        )}
        <Fact name="client">{[session.agent, session.version].filter(Boolean).join(" ")}</Fact>
        {session.user && <Fact name="user">{session.user}</Fact>}
        {session.team && <Fact name="team">{session.team}</Fact>}
        <Fact name="host">{session.host ?? UNKNOWN}</Fact>
        <Fact name="project">{session.project ?? UNKNOWN}</Fact>
        <Fact name="session">{session.id}</Fact>
        {session.parent && <Fact name="parent">{session.parent}</Fact>}
        {session.transcript && <Fact name="transcript">{session.transcript}</Fact>}
      </dl>
    </FoldedPanel>
  );
}

const JSON_PARTS = ["", "timeline", "formulas", "messages", "handoff"];

/** The figures of the main thread, each with its origin, and the API's JSON behind the page. */
export function Audit({ view }: { view: SessionView }) {
  const main = mainThread(view);
  const size = (value: number | null | undefined) => count(value ?? null);
  return (
    <FoldedPanel id="audit" title="Audit" testid="audit">
      <dl class="facts" data-testid="facts">
        <Fact name="sent">{size(main?.sent)}</Fact>
        <Fact name="held">{size(main?.held)}</Fact>
        <Fact name="window" why={main?.window_why}>
          {size(main?.window)}
        </Fact>
        <Fact name="limit" why={main?.limit_why}>
          {size(main?.limit)}
        </Fact>
        <Fact name="of limit">{percent(main?.percent_of_limit ?? null)}</Fact>
        <Fact name="peak sent">{tokens(main?.peak_sent ?? null)}</Fact>
        <Fact name="calls, cycle">{main ? `${count(main.calls)}, ${main.cycle}` : UNKNOWN}</Fact>
        <Fact name="source">{main ? `${main.source}, ${ago(main.at, now.value)}` : UNKNOWN}</Fact>
      </dl>
      <h3>JSON</h3>
      <ul class="links">
        {JSON_PARTS.map((part) => (
          <li key={part}>
            <a href={sessionPath(view.session.id, part)} target="_blank" rel="noreferrer">
              {part || "session"}
            </a>
          </li>
        ))}
      </ul>
      <details>
        <summary>This session as last received</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
        <pre tabIndex={0} data-testid="json">
          {JSON.stringify(view, null, 2)}
        </pre>
      </details>
    </FoldedPanel>
  );
}

interface FactProps {
  name: string;
  why?: string | null | undefined;
  children: ComponentChildren;
}

function Fact({ name, why, children }: FactProps) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd data-fact={name}>
        {children}
        {why && <span class="why">{why}</span>}
      </dd>
    </div>
  );
}
