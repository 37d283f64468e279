/** Loads the list of sessions: at a daemon all at once, at a fleet's server page by page. */

import { batch, signal } from "@preact/signals";
import * as api from "../api";
import type { SessionView } from "../api-types";
import type { SessionStore } from "./session-store";

/** The first pages are small, for a first look; all sessions are loaded in large ones. */
export const PAGE_SIZE = 200;
const LARGE_PAGE_SIZE = 1_000;

/** A list while it is loaded, from its first page on. */
interface List {
  next: string | null;
  pages: number;
  last: SessionView | null;
  ids: Set<string>;
  /** The store's tick before the first page was requested. */
  asked: number;
  /** The sessions seen since then are removed if no page has them; null if all stay. */
  removeFrom: number | null;
}

export class SessionPages {
  /** The last session of the pages that are loaded; null if there are no more pages. */
  readonly last = signal<SessionView | null>(null);
  /** How many pages are loaded. */
  readonly amount = signal(0);
  /** Whether further pages are being loaded, or could not be. */
  readonly state = signal<"" | "loading" | "failed">("");
  isRunning = false;
  private list: List | null = null;
  private wanted = { pages: 1, ended: true };
  private reloaded: Promise<void> = Promise.resolve();

  constructor(
    private readonly store: SessionStore,
    private readonly request: (path: string) => Promise<api.ListPage<SessionView[]>>,
  ) {}

  /** Load the list again, as far as it was loaded; raises RequestFailed. */
  reload(path: string, removeFrom: number | null): Promise<void> {
    const asked = this.store.currentTick();
    this.list = { next: path, pages: 0, last: null, ids: new Set(), asked, removeFrom };
    this.reloaded = this.run(this.list);
    return this.reloaded;
  }

  /** Load so many pages more; those with sessions that ended are the last of the list. */
  async loadMore(pages: number, ended: boolean): Promise<void> {
    this.wanted = { pages: this.amount.peek() + pages, ended };
    if (this.list && !this.isRunning) await this.run(this.list).catch(api.ignoreFailure);
  }

  private async run(list: List): Promise<void> {
    this.isRunning = true;
    try {
      while (list.next !== null && this.isWanted(list)) {
        if (list.pages >= this.amount.peek()) this.state.value = "loading";
        const asked = this.store.currentTick();
        const page = await this.request(this.sized(list.next));
        if (list !== this.list) return this.reloaded;
        batch(() => this.add(list, page, asked));
      }
      this.state.value = "";
    } catch (error) {
      if (list !== this.list) return this.reloaded;
      this.state.value = "failed";
      throw error;
    } finally {
      if (list === this.list) this.isRunning = false;
    }
  }

  private isWanted({ next, pages, last }: List): boolean {
    if (next === null || pages >= this.wanted.pages) return false;
    return this.wanted.ended || last === null || last.session.ended_at === null;
  }

  private sized(path: string): string {
    const isFirst = this.amount.peek() === 0;
    if (isFirst || this.wanted.pages !== Infinity) return path;
    return path.replace(`limit=${PAGE_SIZE}`, `limit=${LARGE_PAGE_SIZE}`);
  }

  private add(list: List, { content, next }: api.ListPage<SessionView[]>, asked: number): void {
    for (const { session } of content) list.ids.add(session.id);
    list.next = next;
    list.pages += 1;
    list.last = content.at(-1) ?? list.last;
    this.store.addSnapshot(content, asked);
    const isDone = !this.isWanted(list);
    if (isDone && list.removeFrom !== null) {
      this.store.removeOthers(list.ids, list.asked, list.removeFrom);
      list.removeFrom = null;
    }
    // Until as many pages are loaded again, those that were loaded before count.
    if (isDone || list.pages > this.amount.peek()) {
      this.amount.value = list.pages;
      this.last.value = next === null ? null : list.last;
    }
  }
}
