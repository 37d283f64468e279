/** Events of the stream on their way to the board: changes are merged into whole views. */

import type { SessionChange, SessionView } from "../api-types";
import type { Board } from "./board";
import { applyChange } from "./change";

export class Incoming {
  /** Views that are not on the board yet: the next change applies to them. */
  private readonly pending = new Map<string, SessionView>();
  /** Changes of sessions that are asked for, in their order. */
  private readonly missing = new Map<string, SessionChange[]>();

  /**
   * @param later is given each new view, and calls `flush` with the last of each session
   * @param ask gives a session that is not known; undefined if there is none
   */
  constructor(
    private readonly board: Board,
    private readonly later: (view: SessionView) => void,
    private readonly ask: (id: string) => Promise<SessionView | undefined>,
  ) {}

  /** Take a whole view. */
  put(view: SessionView): void {
    this.pending.set(view.session.id, view);
    this.later(view);
  }

  /** Merge a change into the view that it is about; one that is not known is asked for. */
  async change(change: SessionChange): Promise<void> {
    const view = this.pending.get(change.id) ?? this.board.of(change.id)?.peek();
    if (view) return this.put(applyChange(view, change));
    const waiting = this.missing.get(change.id);
    if (waiting) waiting.push(change);
    else await this.fetch(change);
  }

  /** Put views on the board. */
  flush(views: SessionView[]): void {
    for (const view of views) this.pending.delete(view.session.id);
    this.board.put(views);
  }

  private async fetch(change: SessionChange): Promise<void> {
    const changes = [change];
    this.missing.set(change.id, changes);
    const view = await this.ask(change.id).finally(() => this.missing.delete(change.id));
    if (view) this.put(changes.reduce(applyChange, view));
  }
}
