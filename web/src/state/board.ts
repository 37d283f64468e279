/** Every session that we know of, each a signal of its own, so that a change draws one row. */

import { batch, type Signal, signal } from "@preact/signals";
import type { SessionView } from "../api-types";

export class Board {
  private readonly held = new Map<string, Signal<SessionView>>();
  private readonly touched = new Map<string, number>();
  private ticks = 0;

  /** Grows with every change of anything: what a list of all depends on. */
  readonly version = signal(0);
  /** Whether the daemon was heard at all: before that "no sessions" is not known. */
  readonly known = signal(false);

  get size(): number {
    return this.held.size;
  }

  /** A session's signal, or nothing where there is no such session. */
  of(id: string): Signal<SessionView> | undefined {
    return this.held.get(id);
  }

  views(): SessionView[] {
    return Array.from(this.held.values(), (held) => held.peek());
  }

  /** Take in sessions as the stream tells them; the last of each counts. */
  put(views: Iterable<SessionView>): void {
    this.ticks += 1;
    batch(() => {
      for (const view of views) {
        this.set(view);
        this.touched.set(view.session.id, this.ticks);
      }
      this.changed();
    });
  }

  /** A mark to be taken before a snapshot is asked for. */
  mark(): number {
    return this.ticks;
  }

  /**
   * Take a snapshot of the sessions that were seen from a time on for the truth, but for what the
   * stream told since it was asked for.
   */
  replace(views: SessionView[], asked: number, from = 0): void {
    const since = (id: string): boolean => (this.touched.get(id) ?? 0) > asked;
    const there = new Set(views.map((view) => view.session.id));
    batch(() => {
      for (const view of views) if (!since(view.session.id)) this.set(view);
      for (const [id, held] of this.held) {
        const meant = held.peek().session.seen_at >= from;
        if (meant && !there.has(id) && !since(id)) this.held.delete(id);
      }
      this.known.value = true;
      this.changed();
    });
  }

  private set(view: SessionView): void {
    const held = this.held.get(view.session.id);
    if (held) held.value = view;
    else this.held.set(view.session.id, signal(view));
  }

  private changed(): void {
    this.version.value = this.version.peek() + 1;
  }
}
