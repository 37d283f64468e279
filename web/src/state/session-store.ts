/** All known sessions, each in a signal of its own: a change redraws one row. */

import { batch, type Signal, signal } from "@preact/signals";
import type { SessionView } from "../api-types";

export class SessionStore {
  private readonly signals = new Map<string, Signal<SessionView>>();
  private readonly changedAt = new Map<string, number>();
  private ticks = 0;

  /** Incremented by every change; lists of all sessions depend on it. */
  readonly version = signal(0);
  /** Whether a snapshot was loaded; before that "no sessions" is not known. */
  readonly loaded = signal(false);

  get size(): number {
    return this.signals.size;
  }

  get(id: string): Signal<SessionView> | undefined {
    return this.signals.get(id);
  }

  views(): SessionView[] {
    return Array.from(this.signals.values(), (held) => held.peek());
  }

  /** Store sessions from the stream; the last of each id counts. */
  put(views: Iterable<SessionView>): void {
    this.ticks += 1;
    batch(() => {
      for (const view of views) {
        this.set(view);
        this.changedAt.set(view.session.id, this.ticks);
      }
      this.bumpVersion();
    });
  }

  /** To be passed with a snapshot; take it before the snapshot is requested. */
  currentTick(): number {
    return this.ticks;
  }

  /** Add sessions, except those that the stream changed after they were requested. */
  addSnapshot(views: SessionView[], asked: number): void {
    batch(() => {
      for (const view of views) if (!this.hasChanged(view.session.id, asked)) this.set(view);
      this.bumpVersion();
      this.loaded.value = true;
    });
  }

  /**
   * Remove the sessions seen since `from` that a snapshot does not have, except those that the
   * stream changed after the snapshot was requested.
   */
  removeOthers(there: ReadonlySet<string>, asked: number, from: number): void {
    for (const [id, held] of this.signals) {
      const meant = held.peek().session.seen_at >= from;
      if (meant && !there.has(id) && !this.hasChanged(id, asked)) this.signals.delete(id);
    }
    this.bumpVersion();
  }

  private hasChanged(id: string, asked: number): boolean {
    return (this.changedAt.get(id) ?? 0) > asked;
  }

  private set(view: SessionView): void {
    const held = this.signals.get(view.session.id);
    if (held) held.value = view;
    else this.signals.set(view.session.id, signal(view));
  }

  private bumpVersion(): void {
    this.version.value = this.version.peek() + 1;
  }
}
