/** One session: reading, timeline, messages and handoffs. */

import { useEffect, useLayoutEffect, useMemo } from "preact/hooks";
import type { SessionView as View } from "../api-types";
import { isFleet, sessionStore } from "../app";
import { CallsTable } from "../components/calls";
import { CompactionsTable } from "../components/compactions";
import { ExplanationPanel } from "../components/explanation";
import { Handoffs } from "../components/handoffs";
import { JsonPanel } from "../components/json-panel";
import { Messages } from "../components/messages";
import { Audit, SessionFacts, SessionHeader } from "../components/session-header";
import { ThreadsTable } from "../components/threads";
import { TimelinePanel } from "../components/timeline";
import { headline } from "../reading";
import { SessionDetail } from "../state/session-detail";

export function SessionView({ id }: { id: string }) {
  const detail = useMemo(() => new SessionDetail(id), [id]);
  useEffect(() => () => detail.close(), [detail]);
  useLayoutEffect(() => scrollTo(0, 0), [id]);
  // Redraw when a session arrives later with the stream.
  sessionStore.version.value;
  const view = sessionStore.get(id)?.value;
  const gone = view === undefined;
  useEffect(() => {
    // The session was deleted: reload to get the daemon's error.
    if (gone && detail.timeline.peek()) void detail.refresh();
  }, [gone]);
  if (!view) return <Missing detail={detail} />;
  return <SessionPage view={view} detail={detail} />;
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

function SessionPage({ view, detail }: { view: View; detail: SessionDetail }) {
  const timeline = detail.timeline.value;
  return (
    <article
      class="session"
      data-testid="session-page"
      data-session={view.session.id}
      aria-label={headline(view.session)}
    >
      <SessionHeader view={view} detail={detail} />
      {!isFleet.value && <ExplanationPanel detail={detail} />}
      <div class="session-body">
        <div class="session-main">
          <TimelinePanel view={view} detail={detail} />
          {view.threads.length > 1 && <ThreadsTable view={view} />}
          {timeline && <CompactionsTable timeline={timeline} />}
          {timeline && <CallsTable calls={timeline.calls} detail={detail} />}
        </div>
        <div class="session-side">
          <SessionFacts view={view} />
          <Messages view={view} timeline={timeline} changed={() => void detail.refresh()} />
          <Handoffs detail={detail} now={view.handoff} />
          <Audit view={view} />
          <JsonPanel view={view} />
        </div>
      </div>
    </article>
  );
}
