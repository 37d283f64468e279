/** The history of a period, loaded again every minute while it is shown. */

import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import * as api from "../api";
import type { History } from "../api-types";

const REFRESH_MS = 60_000;

export interface LoadedHistory {
  history: ReadonlySignal<History | null>;
  /** Why the last request failed; empty if it did not. */
  error: ReadonlySignal<string>;
}

export function useHistory(since: string): LoadedHistory {
  const history = useSignal<History | null>(null);
  const error = useSignal("");
  useEffect(() => {
    let gone = false;
    const load = async () => {
      try {
        const loaded = await api.history(since);
        if (gone) return;
        history.value = loaded;
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
  }, [since]);
  return { history, error };
}
