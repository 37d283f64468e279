/** The header of a session's page, its facts, and its reading with the origin of each figure. */

import type { ComponentChildren } from "preact";
import type { PromptCache, SessionView, Timeline } from "../api-types";
import { isFleet, overviewAddress } from "../app";
import {
  ago,
  count,
  countRange,
  dollars,
  duration,
  occupancy,
  percent,
  tokens,
  UNKNOWN,
} from "../format";
import {
  cacheText,
  headline,
  isOverWindow,
  LEVEL_TEXTS,
  levelOf,
  mainThread,
  noForecastReason,
  quotaText,
  secondsSinceFirstCall,
  stateOf,
  stateText,
} from "../reading";
import { now } from "../state/clock";
import { FLEET_HASH, sessionHash } from "../state/route";
import type { SessionDetail } from "../state/session-detail";
import { AboutLine } from "./about-line";
import { HandoffBadge, SessionProblem, UnreadBadge } from "./badges";
import { Bar } from "./bar";
import { Ends } from "./ends";
import { type KeyFigure, KeyFigures } from "./key-figures";
import { SessionActions } from "./session-actions";

interface HeaderProps {
  view: SessionView;
  detail: SessionDetail;
}

export function SessionHeader({ view, detail }: HeaderProps) {
  const timeline = detail.timeline.value;
  const main = mainThread(view);
  const level = levelOf(main);
  const state = stateOf(view, now.value);
  return (
    <header class="head" data-level={level}>
      <nav class="crumbs" aria-label="Breadcrumb">
        {isFleet.value ? (
          <a href={FLEET_HASH}>Fleet</a>
        ) : (
          <a href={overviewAddress.value}>Sessions</a>
        )}{" "}
        <span aria-hidden="true">/</span> <span>{headline(view.session)}</span>
      </nav>
      <div class="head-line">
        <h1>{headline(view.session)}</h1>
        <span class="state" data-state={state} data-testid="state">
          <span class="state-word">{stateText(view, now.value)}</span>
        </span>
        <HandoffBadge handoff={view.handoff} />
        <UnreadBadge unread={view.unread} />
      </div>
      <AboutLine session={view.session} branch={timeline?.calls.at(-1)?.branch ?? null} />
      <SessionProblem problem={view.session.problem} />
      <div class="head-full">
        <span class="percent" data-testid="percent">
          {occupancy(main?.percent_raw ?? null)}
        </span>
        <span class="level" data-level={level} data-testid="level">
          {LEVEL_TEXTS[level]}
        </span>
        {main && isOverWindow(main) && (
          <span class="over" data-testid="over">
            more than the window
          </span>
        )}
        <span class="head-tokens" data-testid="tokens">
          {count(main?.sent ?? null)} of {count(main?.window ?? null)} tokens
        </span>
        {!!main?.pending && (
          <span data-testid="pending" title="came in since the last call, as an estimate">
            + about {tokens(main.pending)} pending
          </span>
        )}
      </div>
      <Bar thread={main} limitAt={view.limit_at} />
      <Ends view={view} />
      <SessionFigures view={view} timeline={timeline} />
      <SessionActions view={view} detail={detail} />
    </header>
  );
}

/** How near the limit is, and what the session took so far. */
function SessionFigures({ view, timeline }: { view: SessionView; timeline: Timeline | null }) {
  const seconds = timeline && secondsSinceFirstCall(view, timeline.calls);
  const ends = countRange(view.calls_left_range);
  const range = ends && ` (${ends})`;
  const loaded = (words: string) => (timeline ? words : "...");
  const figures: KeyFigure[] = [
    ["of limit", percent(mainThread(view)?.percent_of_limit ?? null), "of the limit is used"],
    [
      "calls left",
      view.calls_left === null ? noForecastReason(view) : `about ${count(view.calls_left)}${range}`,
      `a forecast until the limit, by the growth so far${
        range && "; within the range 8 times out of 10"
      }`,
    ],
    [
      "cost",
      loaded(dollars(timeline?.cost ?? null)),
      "an estimate by list prices, with all subagents",
    ],
    [
      "duration",
      loaded(seconds === null ? UNKNOWN : duration(seconds)),
      "from the first call to the last event",
    ],
  ];
  return <KeyFigures figures={figures} testid="key-figures" />;
}

const CACHE_ORIGINS: Record<PromptCache["origin"], string> = {
  reported: "reported by the client",
  computed: "computed from the last call and the cache's lifetime",
};

/** What the session is. */
export function SessionFacts({ view }: { view: SessionView }) {
  const { session } = view;
  const quotas = view.quotas && quotaText(view.quotas, now.value);
  return (
    <section class="panel" aria-labelledby="facts">
      <h2 id="facts">Session</h2>
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
        {session.became && (
          <Fact name="cleared, continued as">
            <a href={sessionHash(session.became)}>{session.became}</a>
          </Fact>
        )}
        {session.transcript && <Fact name="transcript">{session.transcript}</Fact>}
      </dl>
    </section>
  );
}

/** The figures of the main thread, each with its origin. */
export function Audit({ view }: { view: SessionView }) {
  const main = mainThread(view);
  const size = (value: number | null | undefined) => count(value ?? null);
  return (
    <details class="panel audit" data-testid="audit">
      <summary>
        <h2>Audit</h2>
      </summary>
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
    </details>
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
