/** What one session's page shows beyond its row; asked for anew as the session changes. */

import { effect, signal } from "@preact/signals";
import * as api from "../api";
import type { HandoffRow, Timeline } from "../api-types";
import { board } from "../app";

/** Not asked more often than this, in milliseconds; and never while an answer is under way. */
const PAUSE = 1_000;

export class Detail {
  readonly timeline = signal<Timeline | null>(null);
  readonly handoffs = signal<HandoffRow[]>([]);
  readonly formulas = signal<api.Formulas | null>(null);
  readonly error = signal<api.Refused | null>(null);
  private wantsFormulas = false;
  private busy = false;
  private again = false;
  private closed = false;
  private readonly stop: () => void;

  constructor(readonly id: string) {
    this.stop = effect(() => {
      board.known.value;
      board.of(id)?.value;
      void this.refresh();
    });
  }

  /** The historic formulas are asked for when somebody first wants to see one. */
  showFormulas(): void {
    this.wantsFormulas = true;
    void this.refresh();
  }

  async refresh(): Promise<void> {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    await this.load();
    await new Promise((done) => setTimeout(done, PAUSE));
    this.busy = false;
    if (this.again && !this.closed) {
      this.again = false;
      void this.refresh();
    }
  }

  close(): void {
    this.closed = true;
    this.stop();
  }

  private async load(): Promise<void> {
    try {
      if (!board.of(this.id)) board.put([await api.session(this.id)]);
      const [timeline, handoffs, formulas] = await Promise.all([
        api.timeline(this.id),
        api.handoffs(this.id),
        this.wantsFormulas ? api.formulas(this.id) : null,
      ]);
      if (this.closed) return;
      this.timeline.value = timeline;
      this.handoffs.value = handoffs;
      if (formulas) this.formulas.value = formulas;
      this.error.value = null;
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.error.value = error;
    }
  }
}
