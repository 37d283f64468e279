/** All live sessions, the most urgent first. */

import { useEffect, useLayoutEffect } from "preact/hooks";
import {
  eventSource,
  filter,
  gaps,
  hasMore,
  isFleet,
  loadMore,
  order,
  sessionCount,
  sessionStore,
} from "../app";
import { Filters } from "../components/filters";
import { SessionRows } from "../components/session-rows";
import { Summary } from "../components/summary";
import { plural } from "../format";
import { hasPane, selected } from "../state/selection";
import { NO_FILTER } from "../state/session-list";
import { NoFleetSessions, NoSessions } from "./no-sessions";
import { SessionView } from "./session";

export function Overview() {
  return (
    <div class="overview">
      <div class="overview-list">
        <h1 class="unseen">Sessions</h1>
        {sessionCount.value > 0 && (
          <div class="toolbar">
            {!isFleet.value && <Summary />}
            <Filters />
          </div>
        )}
        <SessionList />
      </div>
      {hasPane.value && <Pane />}
    </div>
  );
}

/** The session that was chosen last; at first the most urgent one, which stays when rows move. */
function Pane() {
  const first = order.value[0];
  const id = selected.value;
  const isGone = id === null || sessionStore.get(id) === undefined;
  useEffect(() => {
    if (isGone && first !== undefined) selected.value = first;
  }, [isGone, first]);
  if (id === null || isGone) return null;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section key={id} class="pane" aria-label="Selected session" tabIndex={0} data-testid="pane">
      <SessionView id={id} embedded />
    </section>
  );
}

function SessionList() {
  const ids = order.value;
  const held = focusedRow();
  useLayoutEffect(() => {
    // A moved row loses the focus: give it back, for keyboard users.
    if (held && document.activeElement === document.body) held.focus({ preventScroll: true });
  }, [ids]);
  if (ids.length > 0)
    return (
      <>
        <SessionRows ids={ids} gaps={gaps.value} />
        <MoreSessions />
      </>
    );
  if (!sessionStore.loaded.value) return <NotLoaded />;
  if (sessionCount.value > 0) return <NoMatches />;
  return isFleet.value ? <NoFleetSessions /> : <NoSessions />;
}

const MORE = {
  "": "Show more sessions",
  loading: "Loading more sessions ...",
  failed: "Load more sessions",
};

function MoreSessions() {
  const state = eventSource.pages.state.value;
  if (!hasMore.value) return null;
  return (
    <div class="more-sessions">
      {state === "failed" && <p role="alert">More sessions could not be loaded.</p>}
      <button type="button" disabled={state === "loading"} onClick={() => loadMore()}>
        {MORE[state]}
      </button>
    </div>
  );
}

function focusedRow(): HTMLElement | null {
  const active = document.activeElement;
  return active instanceof HTMLElement && active.matches(".row-name") ? active : null;
}

function NotLoaded() {
  const words =
    eventSource.connection.value === "lost" ? "The daemon does not answer." : "Loading ...";
  return (
    <section class="note" data-testid="waiting">
      <h2>{words}</h2>
      {eventSource.connection.value === "lost" && (
        <p>
          Start it with <code>brimline serve --background</code>. This page then reconnects.
        </p>
      )}
    </section>
  );
}

function NoMatches() {
  const all = () => {
    filter.value = { ...NO_FILTER, past: true };
  };
  return (
    <section class="note" data-testid="none-fits">
      <h2>No matching sessions{hasMore.value && " so far"}</h2>
      <p>{knownSessions()}</p>
      <button type="button" onClick={all}>
        Show all
      </button>
      <MoreSessions />
    </section>
  );
}

function knownSessions(): string {
  const known = plural(sessionCount.value, "session");
  if (eventSource.pages.last.value !== null) return `None of the ${known} that are loaded.`;
  const others = isFleet.value ? "those that ended" : "ended and older ones";
  return `${known} in total, including ${others}.`;
}
