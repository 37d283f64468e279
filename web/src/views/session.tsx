/** One session: its reading, what fills it, its timeline, messages and handoffs. */

import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { isFleet, sessionStore } from "../app";
import { CallsPanel } from "../components/calls";
import { CompactionsTable } from "../components/compactions";
import { ExplanationPanel } from "../components/explanation";
import { Handoffs } from "../components/handoffs";
import { Messages } from "../components/messages";
import { RecallSearch } from "../components/recall-search";
import { Audit, SessionFacts } from "../components/session-facts";
import { SessionHeader } from "../components/session-header";
import { ThreadsTable } from "../components/threads";
import { TimelinePanel } from "../components/timeline";
import { headline } from "../reading";
import { SessionDetail, type SessionPart } from "../state/session-detail";

interface Props {
  id: string;
  /** Whether it is a part of another view, which has its own headline and scrolls by itself. */
  embedded?: boolean;
}

export function SessionView({ id, embedded = false }: Props) {
  const detail = useMemo(() => new SessionDetail(id), [id]);
  useEffect(() => () => detail.close(), [detail]);
  useLayoutEffect(() => {
    if (!embedded) scrollTo(0, 0);
  }, [id]);
  // Redraw when a session arrives later with the stream.
  sessionStore.version.value;
  const stored = sessionStore.get(id)?.value;
  const before = useRef(stored);
  const gone = stored === undefined;
  useEffect(() => {
    // It was deleted: then this gets the daemon's error. Or no loaded page of a fleet has it.
    if (gone && detail.timeline.peek()) void detail.refresh();
  }, [gone]);
  const view = stored ?? (detail.error.value ? undefined : before.current);
  before.current = view;
  if (!view) return <Missing detail={detail} />;
  return <SessionPage view={view} detail={detail} embedded={embedded} />;
}

function Missing({ detail }: { detail: SessionDetail }) {
  const error = detail.error.value;
  return (
    <section class="note" data-testid="missing">
      <h1>{error ? "No such session" : "Session"}</h1>
      <p>{error ? error.message : "Loading ..."}</p>
      {error?.hint && <p>{error.hint}</p>}
      <p>
        <a href="#/">All sessions</a>
      </p>
    </section>
  );
}

/** The parts of a session's page in their order, on one column or two. */
function SessionPage({ view, detail, embedded }: SessionPart & { embedded: boolean }) {
  const timeline = detail.timeline.value;
  return (
    <article
      class="session"
      data-testid="session-page"
      data-session={view.session.id}
      aria-label={headline(view.session)}
    >
      <SessionHeader view={view} detail={detail} embedded={embedded} />
      <div class="session-body">
        {!isFleet.value && <ExplanationPanel detail={detail} />}
        <TimelinePanel view={view} detail={detail} />
        {!isFleet.value && detail.explanation.value?.problem == null && (
          <RecallSearch id={view.session.id} />
        )}
        <Messages view={view} timeline={timeline} changed={() => void detail.refresh()} />
        <Handoffs detail={detail} now={view.handoff} />
        {timeline && timeline.compactions.length > 0 && (
          <CompactionsTable timeline={timeline} detail={detail} />
        )}
        {view.threads.length > 1 && <ThreadsTable view={view} />}
        <SessionFacts view={view} />
        <Audit view={view} />
        {timeline && <CallsPanel id={view.session.id} calls={timeline.calls} detail={detail} />}
      </div>
    </article>
  );
}
