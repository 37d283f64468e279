/** The page: navigation, the current view, and the daemon's status below. */

import * as api from "../api";
import type { DaemonStatus } from "../api-types";
import { caller, eventSource, helpOpen, isFleet, overviewAddress } from "../app";
import { ConnectionState } from "../components/connection";
import { Disconnected } from "../components/disconnected";
import { StoreProblems } from "../components/store-problems";
import { ago, count } from "../format";
import { now } from "../state/clock";
import { FLEET_HASH, type Route, route } from "../state/route";
import { FleetView } from "./fleet";
import { FleetUsageView } from "./fleet-usage";
import { Help } from "./help";
import { HistoryView } from "./history";
import { Overview } from "./overview";
import { SessionView } from "./session";

export function Page() {
  return (
    <>
      <button
        type="button"
        class="skip"
        onClick={() => document.getElementById("content")?.focus()}
      >
        Skip to content
      </button>
      <Top view={route.value.view} />
      <Disconnected />
      <StoreProblems />
      <main id="content" tabIndex={-1} data-view={route.value.view}>
        <Content route={route.value} />
      </main>
      <Footer />
      <Help />
    </>
  );
}

function Content({ route }: { route: Route }) {
  if (route.view === "session") return <SessionView key={route.id} id={route.id} />;
  if (route.view === "fleet") return <FleetView />;
  return route.view === "history" ? <AnyHistory /> : <Overview />;
}

/** The history of the machine or of the fleet, once it is known which of them answers. */
function AnyHistory() {
  if (eventSource.daemon.value === null) return <p class="quiet">Loading ...</p>;
  return isFleet.value ? <FleetUsageView /> : <HistoryView />;
}

function Top({ view }: { view: Route["view"] }) {
  const here = (name: Route["view"]) => (view === name ? ("page" as const) : undefined);
  return (
    <header class="top">
      <a
        class="brand"
        href={isFleet.value ? FLEET_HASH : "#/"}
        aria-label={isFleet.value ? "Brimline, the fleet" : "Brimline, all sessions"}
      >
        <Mark /> <span class="brand-word">Brimline</span>
      </a>
      <nav aria-label="Views">
        {isFleet.value && (
          <a href={FLEET_HASH} aria-current={here("fleet")}>
            Fleet
          </a>
        )}
        <a href={overviewAddress.value} aria-current={here("overview")}>
          Sessions
        </a>
        <a href="#/history" aria-current={here("history")}>
          History
        </a>
      </nav>
      <ConnectionState />
      <button
        type="button"
        class="keys"
        aria-label="? Help and keys"
        onClick={() => {
          helpOpen.value = true;
        }}
      >
        ?
      </button>
    </header>
  );
}

function Mark() {
  return (
    <svg class="mark" viewBox="0 0 24 24" aria-hidden="true">
      <path class="mark-fill" d="M5.6 11h12.8l-.9 8.5H6.5z" />
      <path class="mark-cup" d="M4 3h16l-2 18H6z" />
      <path class="mark-brim" d="M2 7h20" />
    </svg>
  );
}

function Footer() {
  const daemon = eventSource.daemon.value;
  return (
    <footer class="foot">
      {daemon && (
        <p data-testid="daemon">
          brimline {daemon.version}
          {daemon.demo && " (demo)"} at {daemon.address}, started {ago(daemon.since, now.value)}
          {daemon.fleet ? <SignedIn /> : `; ${eventCounts(daemon)}`}
        </p>
      )}
    </footer>
  );
}

function eventCounts({ heard, malformed, dropped, late }: DaemonStatus): string {
  const lost = `${count(malformed)} malformed, ${count(dropped)} dropped, ${count(late)} came late`;
  return `${count(heard)} events, ${lost}`;
}

function SignedIn() {
  const who = caller.value;
  if (!who) return null;
  return (
    <>
      ; signed in as {who.actor} of {who.organisation}
      {who.can_sign_out && (
        <>
          {" "}
          <button type="button" class="link" onClick={signOut}>
            Sign out
          </button>
        </>
      )}
    </>
  );
}

async function signOut(): Promise<void> {
  await api.signOut();
  location.replace("/");
}
