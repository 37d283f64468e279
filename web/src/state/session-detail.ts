/** The data of one session's page; reloaded when the session changes. */

import { effect, signal } from "@preact/signals";
import * as api from "../api";
import type { HandoffRow, Timeline } from "../api-types";
import { sessionStore } from "../app";

const MIN_INTERVAL_MS = 1_000;

export class SessionDetail {
  readonly timeline = signal<Timeline | null>(null);
  readonly handoffs = signal<HandoffRow[]>([]);
  readonly formulas = signal<api.Formulas | null>(null);
  readonly error = signal<api.RequestFailed | null>(null);
  private wantsFormulas = false;
  private isLoading = false;
  private refreshAgain = false;
  private isClosed = false;
  private readonly stop: () => void;

  constructor(readonly id: string) {
    this.stop = effect(() => {
      sessionStore.loaded.value;
      sessionStore.get(id)?.value;
      void this.refresh();
    });
  }

  /** Load the historic formulas too, from now on. */
  showFormulas(): void {
    this.wantsFormulas = true;
    void this.refresh();
  }

  async refresh(): Promise<void> {
    if (this.isLoading) {
      this.refreshAgain = true;
      return;
    }
    this.isLoading = true;
    await this.load();
    await new Promise((done) => setTimeout(done, MIN_INTERVAL_MS));
    this.isLoading = false;
    if (this.refreshAgain && !this.isClosed) {
      this.refreshAgain = false;
      void this.refresh();
    }
  }

  close(): void {
    this.isClosed = true;
    this.stop();
  }

  private async load(): Promise<void> {
    try {
      if (!sessionStore.get(this.id)) sessionStore.put([await api.session(this.id)]);
      const [timeline, handoffs, formulas] = await Promise.all([
        api.timeline(this.id),
        api.handoffs(this.id),
        this.wantsFormulas ? api.formulas(this.id) : null,
      ]);
      if (this.isClosed) return;
      this.timeline.value = timeline;
      this.handoffs.value = handoffs;
      if (formulas) this.formulas.value = formulas;
      this.error.value = null;
    } catch (error) {
      if (!(error instanceof api.RequestFailed)) throw error;
      this.error.value = error;
    }
  }
}
