/** Buffers the stream's events before the store: merges changes into whole views. */

import type { SessionChange, SessionView } from "../api-types";
import { applyChange } from "./session-change";
import type { SessionStore } from "./session-store";

export class StreamBuffer {
  /** Views that are not in the store yet: the next change applies to them. */
  private readonly pending = new Map<string, SessionView>();
  /** Changes of sessions that are being loaded, in order. */
  private readonly requested = new Map<string, SessionChange[]>();

  /**
   * @param schedule receives each new view, and calls `flush` with the last of each session
   * @param load returns an unknown session; undefined if there is none
   */
  constructor(
    private readonly store: SessionStore,
    private readonly schedule: (view: SessionView) => void,
    private readonly load: (id: string) => Promise<SessionView | undefined>,
  ) {}

  put(view: SessionView): void {
    this.pending.set(view.session.id, view);
    this.schedule(view);
  }

  /** Merge a change into its view; an unknown session is loaded first. */
  async applyChange(change: SessionChange): Promise<void> {
    const view = this.pending.get(change.id) ?? this.store.get(change.id)?.peek();
    if (view) return this.put(applyChange(view, change));
    const waiting = this.requested.get(change.id);
    if (waiting) waiting.push(change);
    else await this.fetch(change);
  }

  /** Move views to the store. */
  flush(views: SessionView[]): void {
    for (const view of views) this.pending.delete(view.session.id);
    this.store.put(views);
  }

  private async fetch(change: SessionChange): Promise<void> {
    const changes = [change];
    this.requested.set(change.id, changes);
    const view = await this.load(change.id).finally(() => this.requested.delete(change.id));
    if (view) this.put(changes.reduce(applyChange, view));
  }
}
