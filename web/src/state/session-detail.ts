/** The data of one session's page; reloaded when the session changes. */

import { computed, effect, signal } from "@preact/signals";
import * as api from "../api";
import type { Explanation, HandoffRow, SessionView, Timeline } from "../api-types";
import { eventSource, isFleet, sessionStore } from "../app";

const MIN_INTERVAL_MS = 1_000;
const POLL_INTERVAL_MS = 5_000;
/** The daemon reads the whole transcript for it: less often if that takes long. */
const MIN_EXPLANATION_INTERVAL_MS = 2_000;
const EXPLANATION_PAUSE_FACTOR = 10;

/** What each part of a session's page is given. */
export interface SessionPart {
  view: SessionView;
  detail: SessionDetail;
}

export class SessionDetail {
  readonly timeline = signal<Timeline | null>(null);
  readonly handoffs = signal<HandoffRow[]>([]);
  readonly formulas = signal<api.Formulas | null>(null);
  readonly error = signal<api.RequestFailed | null>(null);
  readonly explanation = signal<Explanation | null>(null);
  readonly explanationError = signal<api.RequestFailed | null>(null);
  /** The thread whose explanation is shown, if there is one of it. */
  readonly thread = signal("main");
  readonly explainedThread = computed(() => {
    const threads = this.explanation.value?.threads ?? [];
    return threads.find(({ thread }) => thread === this.thread.value) ?? threads[0] ?? null;
  });
  /** The call that the table of calls shows. */
  readonly selected = signal<{ thread: string; call: string } | null>(null);
  /** The draft that was asked for. */
  readonly draft = signal<HandoffRow | null>(null);
  private isExplaining = false;
  private explainAgain = false;
  private wantsFormulas = false;
  private isLoading = false;
  private refreshAgain = false;
  private isClosed = false;
  private readonly stop: () => void;
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(readonly id: string) {
    this.stop = effect(() => {
      sessionStore.loaded.value;
      const view = sessionStore.get(id)?.value;
      void this.refresh();
      if (view && !isFleet.value) void this.explain();
    });
    this.timer = setInterval(() => void this.poll(), POLL_INTERVAL_MS);
  }

  /** Load the session if no stream brings its changes. */
  private async poll(): Promise<void> {
    if (eventSource.isFollowing || document.hidden || !eventSource.daemon.peek()) return;
    try {
      sessionStore.put([await api.session(this.id)]);
    } catch (error) {
      if (!(error instanceof api.RequestFailed)) throw error;
    }
  }

  selectCall(thread: string, call: string): void {
    this.selected.value = { thread, call };
  }

  /** Draft a handoff; raises RequestFailed. */
  async draftHandoff(): Promise<HandoffRow> {
    const draft = await api.draftHandoff(this.id);
    this.draft.value = draft;
    void this.refresh();
    return draft;
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

  /** Load what fills the session, one request at a time and with pauses. */
  private async explain(): Promise<void> {
    if (this.isExplaining) {
      this.explainAgain = true;
      return;
    }
    this.isExplaining = true;
    const begun = performance.now();
    try {
      const explanation = await api.explanation(this.id);
      if (!this.isClosed) this.explanation.value = explanation;
      this.explanationError.value = null;
    } catch (error) {
      if (!(error instanceof api.RequestFailed)) throw error;
      this.explanationError.value = error;
    }
    const pause = EXPLANATION_PAUSE_FACTOR * (performance.now() - begun);
    await new Promise((done) => setTimeout(done, Math.max(MIN_EXPLANATION_INTERVAL_MS, pause)));
    this.isExplaining = false;
    if (this.explainAgain && !this.isClosed) {
      this.explainAgain = false;
      void this.explain();
    }
  }

  close(): void {
    this.isClosed = true;
    clearInterval(this.timer);
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
