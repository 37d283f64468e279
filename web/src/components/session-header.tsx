/** The header of a session's page: how full it is, what stops it, what it cost, what to do. */

import { isFleet, overviewAddress } from "../app";
import { count, occupancy, shortPercent, tokens } from "../format";
import {
  headline,
  isOverWindow,
  LEVEL_TEXTS,
  levelOf,
  mainThread,
  stateOf,
  stateText,
} from "../reading";
import { now } from "../state/clock";
import { FLEET_HASH, sessionHash } from "../state/route";
import type { SessionPart } from "../state/session-detail";
import { AboutLine } from "./about-line";
import { HandoffBadge, SessionProblem, UnreadBadge } from "./badges";
import { Bar } from "./bar";
import { Ends } from "./ends";
import { NeedText } from "./need-text";
import { SessionActions } from "./session-actions";

interface Props extends SessionPart {
  /** Whether it stands beside the list of sessions. */
  embedded: boolean;
}

export function SessionHeader({ view, detail, embedded }: Props) {
  const main = mainThread(view);
  const level = levelOf(main);
  return (
    <header class="head" data-level={level}>
      <Names view={view} detail={detail} embedded={embedded} />
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
      <LimitLabel limit={main?.limit ?? null} at={view.limit_at} />
      <div data-testid="next">
        <Ends view={view} timeline={detail.timeline.value} />
        <div class="head-act">
          <NeedText need={view.need} />
          <SessionActions view={view} detail={detail} />
        </div>
      </div>
    </header>
  );
}

/** Where the session is listed, its headline and state, and whose it is. */
function Names({ view, detail, embedded }: Props) {
  const state = stateOf(view, now.value);
  const name = headline(view.session);
  const { became, id } = view.session;
  const Headline = embedded ? "h2" : "h1";
  return (
    <>
      {!embedded && (
        <nav class="crumbs" aria-label="Breadcrumb">
          {isFleet.value ? (
            <a href={FLEET_HASH}>Fleet</a>
          ) : (
            <a href={overviewAddress.value}>Sessions</a>
          )}{" "}
          <span aria-hidden="true">/</span> <span>{name}</span>
        </nav>
      )}
      <div class="head-line">
        <Headline class="headline">
          {embedded ? <a href={sessionHash(id)}>{name}</a> : name}
        </Headline>
        <span class="state" data-state={state} data-testid="state">
          <span class="state-word">{stateText(view, now.value)}</span>
        </span>
        <HandoffBadge handoff={view.handoff} />
        <UnreadBadge unread={view.unread} />
      </div>
      <AboutLine
        session={view.session}
        branch={detail.timeline.value?.calls.at(-1)?.branch ?? null}
      />
      {became && (
        <p class="quiet" data-testid="successor">
          cleared, continued as <a href={sessionHash(became)}>{became}</a>
        </p>
      )}
    </>
  );
}

/** The words of the bar's mark, below it. */
function LimitLabel({ limit, at }: { limit: number | null; at: number | null }) {
  if (limit === null || at === null) return <p class="limit-label">limit unknown</p>;
  return (
    <p class="limit-label" style={{ "--at": `${Math.min(100, Math.max(0, at))}%` }}>
      <span>
        limit {tokens(limit)}, {shortPercent(at)}
      </span>
    </p>
  );
}
