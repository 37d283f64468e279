/** One session: what it holds now, what happened before, and what can be told to it. */

import { useEffect, useMemo } from "preact/hooks";
import type { SessionView as View } from "../api-types";
import { board, nameOf } from "../app";
import { CallsTable } from "../parts/calls";
import { CompactionsTable } from "../parts/compactions";
import { Handoffs } from "../parts/handoffs";
import { Facts, Head } from "../parts/head";
import { Behind } from "../parts/json";
import { Messages } from "../parts/messages";
import { ThreadsTable } from "../parts/threads";
import { TimelinePanel } from "../parts/timeline";
import { Detail } from "../state/detail";

export function SessionView({ id }: { id: string }) {
  const detail = useMemo(() => new Detail(id), [id]);
  useEffect(() => () => detail.close(), [detail]);
  // A session that comes with the stream later is drawn when it is there.
  board.version.value;
  const view = board.of(id)?.value;
  const gone = view === undefined;
  useEffect(() => {
    // It was there and is not: the daemon says why.
    if (gone && detail.timeline.peek()) void detail.refresh();
  }, [gone]);
  if (!view) return <Missing detail={detail} />;
  return <Whole view={view} detail={detail} />;
}

function Missing({ detail }: { detail: Detail }) {
  const error = detail.error.value;
  return (
    <section class="note" data-testid="missing">
      <h1>{error ? "No such session" : "Session"}</h1>
      <p>{error ? error.message : "Asking the daemon ..."}</p>
      {error?.hint && <p>{error.hint}</p>}
      <p>
        <a href="#/">All sessions</a>
      </p>
    </section>
  );
}

function Whole({ view, detail }: { view: View; detail: Detail }) {
  const timeline = detail.timeline.value;
  return (
    <article
      class="session"
      data-testid="session-page"
      data-session={view.session.id}
      aria-label={nameOf(view)}
    >
      <Head view={view} />
      <div class="session-body">
        <div class="session-main">
          <TimelinePanel view={view} detail={detail} />
          {view.threads.length > 1 && <ThreadsTable view={view} />}
          {timeline && <CompactionsTable timeline={timeline} />}
          {timeline && <CallsTable calls={timeline.calls} />}
        </div>
        <div class="session-side">
          <Facts view={view} />
          <Messages view={view} timeline={timeline} changed={() => void detail.refresh()} />
          <Handoffs handoffs={detail.handoffs.value} now={view.handoff} />
          <Behind view={view} />
        </div>
      </div>
    </article>
  );
}
