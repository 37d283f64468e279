/** Data that is loaded again every minute while it is shown. */

import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import * as api from "../api";
import type { FleetUsage, History, HistoryPeriod, ToolReport } from "../api-types";

const REFRESH_MS = 60_000;

export interface Loaded<T> {
  value: ReadonlySignal<T | null>;
  /** Why the last request failed; empty if it did not. */
  error: ReadonlySignal<string>;
}

/** Load something, also again when the key of what is asked for changes. */
function useLoaded<T>(request: () => Promise<T>, key: string): Loaded<T> {
  const value = useSignal<T | null>(null);
  const error = useSignal("");
  useEffect(() => {
    let gone = false;
    const load = async () => {
      try {
        const loaded = await request();
        if (gone) return;
        value.value = loaded;
        error.value = "";
      } catch (refused) {
        if (!(refused instanceof api.RequestFailed)) throw refused;
        error.value = refused.message;
      }
    };
    void load();
    const timer = setInterval(() => void load(), REFRESH_MS);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [key]);
  return { value, error };
}

export const PERIODS = { day: "day", week: "week", month: "month" } as const;
export type Period = keyof typeof PERIODS;

export const PARTS = {
  project: "project",
  branch: "branch",
  model: "model",
  agent: "agent",
} as const;
export type Part = keyof typeof PARTS;

/** The totals of a span, its sessions, and the learned limits. */
export function useHistory(since: string): Loaded<History> {
  return useLoaded(() => api.history(since), since);
}

/** The periods of a span, each with its parts. */
export function usePeriods(since: string, per: Period, by: Part): Loaded<HistoryPeriod[]> {
  return useLoaded(() => api.periods(since, per, by), [since, per, by].join());
}

/** What the sessions of a project carried. */
export function useTools(project: string): Loaded<ToolReport> {
  return useLoaded(() => api.tools(project), project);
}

/** What a fleet used, by the query of its choices. */
export function useFleetUsage(query: string): Loaded<FleetUsage> {
  return useLoaded(() => api.fleetUsage(query), query);
}
