/** The fleet in groups, loaded again every few seconds while it is shown. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import * as api from "../api";
import type { FleetView, MachineView } from "../api-types";
import { sessionStore } from "../app";

const REFRESH_MS = 10_000;
const MACHINES_MS = 60_000;
const NO_ANSWER = "The server does not answer: what is shown is older.";

export type Grouping = FleetView["by"];

export const GROUPINGS: Record<Grouping, string> = {
  team: "team",
  user: "user",
  host: "host",
  project: "project",
  branch: "branch",
  model: "model",
  version: "client version",
  agent: "agent",
};

export const SPANS = { "1h": "hour", "4h": "4 hours", "24h": "24 hours", "7d": "7 days" } as const;
export type Span = keyof typeof SPANS;

/** What the user chose, and what was loaded last; kept while another view is shown. */
export const grouping = signal<Grouping>("team");
export const span = signal<Span>("1h");
/** How many sessions each list has: the first ones, until the user asks for more. */
export const listed = signal(20);
export const MAX_LISTED = 100;
export const fleet = signal<FleetView | null>(null);
/** Every machine that reports, the longest silent first. */
export const machines = signal<MachineView[] | null>(null);
/** Why the last request failed; empty if it did not. */
export const fleetError = signal("");

/** Keep the fleet loaded; its sessions are put into the store that rows and pages read. */
export function useFleet(by: Grouping, since: Span, limit: number): void {
  useEffect(() => {
    let gone = false;
    const load = async () => {
      if (document.hidden) return;
      try {
        const loaded = await api.fleet(by, since, limit);
        if (gone) return;
        sessionStore.put([...loaded.fullest, ...loaded.needs_handoff]);
        fleet.value = loaded;
        fleetError.value = "";
      } catch (refused) {
        if (!(refused instanceof api.RequestFailed)) throw refused;
        fleetError.value = refused.status === 0 ? NO_ANSWER : refused.message;
      }
    };
    void load();
    const timer = setInterval(() => void load(), REFRESH_MS);
    document.addEventListener("visibilitychange", load);
    return () => {
      gone = true;
      clearInterval(timer);
      document.removeEventListener("visibilitychange", load);
    };
  }, [by, since, limit]);
}

/** Keep the machines loaded: they change slowly, and a large fleet has many. */
export function useMachines(): void {
  useEffect(() => {
    let gone = false;
    const load = async () => {
      if (document.hidden) return;
      try {
        const loaded = await api.machines();
        if (!gone) machines.value = loaded;
      } catch (refused) {
        // The fleet's own request, which is more frequent, reports why.
        if (!(refused instanceof api.RequestFailed)) throw refused;
      }
    };
    void load();
    const timer = setInterval(() => void load(), MACHINES_MS);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, []);
}
