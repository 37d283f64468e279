/** The stream of changes: opened again whenever it ends, whatever it ends by. */

import { signal } from "@preact/signals";
import * as api from "./api";
import type { DaemonStatus, SessionChange, SessionView } from "./api-types";
import { LIVE_FOR } from "./reading";
import type { Board } from "./state/board";
import { gather } from "./state/gather";
import { Incoming } from "./state/incoming";

/** How often the page is drawn when much changes at once, in milliseconds between. */
const PAUSE = 500;
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 15_000;
/** How often the daemon is asked how it is: the stream's heartbeat is not told to a page. */
const CHECK_EVERY = 20_000;

/** Clocks differ, and asking takes time: what is so near to the edge is kept; seconds. */
const SLACK = 60;

export type Connection = "connecting" | "live" | "lost";

export class Live {
  readonly connection = signal<Connection>("connecting");
  readonly daemon = signal<DaemonStatus | null>(null);
  private stream: EventSource | null = null;
  private wait = FIRST_WAIT;
  private past = false;
  private retry: number | undefined;
  private readonly incoming: Incoming;

  constructor(private readonly board: Board) {
    const later = gather<SessionView>(
      (view) => view.session.id,
      (views) => this.incoming.flush(views),
      PAUSE,
    );
    this.incoming = new Incoming(board, later, sessionOrNone);
  }

  /** Connect, and stay so: after sleep, a lost network and a restart of the daemon. */
  start(): void {
    this.open();
    addEventListener("online", () => this.again());
    addEventListener("offline", () => this.lost());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) void this.catchUp();
    });
    setInterval(() => void this.check(), CHECK_EVERY);
  }

  /** Know of past sessions too: they are asked for when somebody first wants to see them. */
  reachBack(): void {
    if (this.past) return;
    this.past = true;
    void this.catchUp();
  }

  /** Drop the connection and make a new one at once. */
  again(): void {
    this.wait = FIRST_WAIT;
    this.open();
  }

  private open(): void {
    clearTimeout(this.retry);
    this.stream?.close();
    const stream = new EventSource("/v1/stream");
    this.stream = stream;
    stream.onopen = () => this.opened();
    stream.onerror = () => this.failed(stream);
    stream.addEventListener("session", (event: MessageEvent<string>) => {
      this.incoming.put(JSON.parse(event.data) as SessionView);
    });
    stream.addEventListener("change", (event: MessageEvent<string>) => {
      void this.incoming.change(JSON.parse(event.data) as SessionChange);
    });
  }

  private opened(): void {
    this.wait = FIRST_WAIT;
    this.connection.value = "live";
    void this.catchUp();
  }

  /** The browser tries again by itself, but for an answer that it takes for final. */
  private failed(stream: EventSource): void {
    this.lost();
    if (stream.readyState !== EventSource.CLOSED) return;
    clearTimeout(this.retry);
    this.retry = window.setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }

  private lost(): void {
    this.connection.value = "lost";
  }

  /** Ask for all of it: the stream does not tell what was forgotten, nor of another store. */
  private async catchUp(): Promise<void> {
    const asked = this.board.mark();
    const from = this.past ? 0 : Date.now() / 1000 - LIVE_FOR + SLACK;
    try {
      const since = this.past ? "all" : "24h";
      const [views, daemon] = await Promise.all([api.sessions(since), api.daemon()]);
      this.board.replace(views, asked, from);
      this.met(daemon);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.lost();
    }
  }

  private async check(): Promise<void> {
    if (document.hidden) return;
    try {
      this.met(await api.daemon());
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.lost();
      return;
    }
    if (this.connection.peek() === "lost") this.again();
  }

  /** Another daemon may have another store: what the stream would go on from means nothing there. */
  private met(daemon: DaemonStatus): void {
    const before = this.daemon.peek();
    this.daemon.value = daemon;
    const restarted = before?.pid !== daemon.pid || before.since !== daemon.since;
    if (before !== null && restarted) this.again();
  }
}

/** A session, or nothing if the daemon has none of that id, or does not answer. */
async function sessionOrNone(id: string): Promise<SessionView | undefined> {
  try {
    return await api.session(id);
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    return undefined;
  }
}
