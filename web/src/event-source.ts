/** The client of the daemon's event stream; reconnects whenever the stream ends. */

import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import * as api from "./api";
import type { DaemonStatus, SessionChange, SessionView } from "./api-types";
import { LIVE_FOR_S } from "./reading";
import type { SessionStore } from "./state/session-store";
import { StreamBuffer } from "./state/stream-buffer";
import { throttleByKey } from "./state/throttle";

const REDRAW_INTERVAL_MS = 500;
const MIN_RETRY_MS = 1_000;
const MAX_RETRY_MS = 15_000;
/** The daemon is checked this often: EventSource does not report the stream's heartbeat. */
const CHECK_INTERVAL_MS = 20_000;

/** Of the sessions of a fleet so many are loaded at a time, the last seen first. */
const FLEET_PAGE = 200;

/** Sessions this close to the age limit are kept: clocks differ and requests take time. */
const CLOCK_SLACK_S = 60;

export type Connection = "connecting" | "live" | "lost";

export class SessionEventSource {
  readonly connection = signal<Connection>("connecting");
  readonly daemon = signal<DaemonStatus | null>(null);
  /** When the connection was lost, in seconds; null while it is there. */
  readonly lostAt = computed(() => (this.connection.value === "lost" ? Date.now() / 1000 : null));
  /** The path of the sessions that are not loaded: those of a fleet that were seen before. */
  private readonly next = signal<string | null>(null);
  private stream: EventSource | null = null;
  private retryDelayMs = MIN_RETRY_MS;
  private includesPast = false;
  /** Whether the stream was opened: a fleet's server may have too many sessions to follow all. */
  private followsAll = false;
  private retryTimer: number | undefined;
  private readonly buffer: StreamBuffer;

  constructor(private readonly board: SessionStore) {
    const later = throttleByKey<SessionView>(
      (view) => view.session.id,
      (views) => this.buffer.flush(views),
      REDRAW_INTERVAL_MS,
    );
    this.buffer = new StreamBuffer(board, later, fetchSession);
  }

  /**
   * Connect, and reconnect after sleep, network loss or a restart of the daemon. At a fleet's
   * server this waits until `wantsAll`: until then, views load the sessions that they show.
   */
  async start(wantsAll: ReadonlySignal<boolean>, onFleet: () => void): Promise<void> {
    addEventListener("online", () => this.reconnect());
    addEventListener("offline", () => this.markLost());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.followsAll) void this.loadSnapshot();
    });
    setInterval(() => void this.check(), CHECK_INTERVAL_MS);
    await this.check();
    if (this.daemon.peek()?.fleet) onFleet();
    effect(() => {
      const isFleet = this.daemon.value?.fleet === true;
      if (this.followsAll || (isFleet && !wantsAll.value)) return;
      this.followsAll = true;
      this.open();
    });
  }

  /** Whether changes of sessions arrive by themselves. */
  get isFollowing(): boolean {
    return this.followsAll;
  }

  /** Whether there are sessions that are not loaded. */
  get hasMore(): boolean {
    return this.next.value !== null;
  }

  /** Load the sessions that were seen before those that are loaded: the next ones, or all. */
  async loadMore(every: boolean): Promise<void> {
    while (this.next.peek() !== null) {
      const path = this.next.peek() as string;
      const asked = this.board.currentTick();
      const page = await api.sessionPage(path).catch(ignoreFailure);
      // Another caller has loaded it, or the list was loaded again.
      if (page === undefined || this.next.peek() !== path) return;
      this.board.addSnapshot(page.content, asked);
      this.next.value = page.next;
      if (!every) return;
    }
  }

  /** Load past sessions too, when the user first asks for them. */
  loadPast(): void {
    if (this.includesPast) return;
    this.includesPast = true;
    void this.loadSnapshot();
  }

  /** Replace the connection at once. */
  reconnect(): void {
    this.retryDelayMs = MIN_RETRY_MS;
    if (this.followsAll) this.open();
    else void this.check();
  }

  private open(): void {
    clearTimeout(this.retryTimer);
    this.stream?.close();
    const stream = new EventSource("/v1/stream?from=now");
    this.stream = stream;
    stream.onopen = () => void this.opened(stream);
    stream.onerror = () => this.failed(stream);
    stream.addEventListener("session", (event: MessageEvent<string>) => {
      this.buffer.put(api.decode(event.data) as SessionView);
    });
    stream.addEventListener("change", (event: MessageEvent<string>) => {
      void this.buffer.applyChange(api.decode(event.data) as SessionChange);
    });
  }

  /** Live only with all sessions: what the stream reports before them is a part. */
  private async opened(stream: EventSource): Promise<void> {
    this.retryDelayMs = MIN_RETRY_MS;
    const isLoaded = await this.loadSnapshot();
    const isOpen = stream === this.stream && stream.readyState === EventSource.OPEN;
    if (isLoaded && isOpen) this.connection.value = "live";
  }

  /**
   * The browser retries by itself, except after an HTTP error, which closes the stream and is not
   * told. If it was 401, the same reply to a request leads to the sign-in.
   */
  private failed(stream: EventSource): void {
    this.markLost();
    if (stream.readyState !== EventSource.CLOSED) return;
    api.daemon().catch(() => {});
    clearTimeout(this.retryTimer);
    this.retryTimer = window.setTimeout(() => this.open(), this.retryDelayMs);
    this.retryDelayMs = Math.min(this.retryDelayMs * 2, MAX_RETRY_MS);
  }

  private markLost(): void {
    this.connection.value = "lost";
  }

  /**
   * Load all sessions, of a fleet those seen last: the stream does not report deleted sessions or
   * another store. Returns whether the daemon answered.
   */
  private async loadSnapshot(): Promise<boolean> {
    const asked = this.board.currentTick();
    const from = this.includesPast ? 0 : Date.now() / 1000 - LIVE_FOR_S + CLOCK_SLACK_S;
    try {
      const since = this.includesPast ? "all" : "24h";
      const limit = this.daemon.peek()?.fleet ? FLEET_PAGE : null;
      const shown = api.sessions(since, limit).then(({ content, next }) => {
        const oldest = next === null ? from : content.at(-1)?.session.seen_at;
        this.board.applySnapshot(content, asked, oldest);
        this.next.value = next;
      });
      const [daemon] = await Promise.all([api.daemon(), shown]);
      this.noteDaemon(daemon);
      return true;
    } catch (error) {
      if (!(error instanceof api.RequestFailed)) throw error;
      this.markLost();
      return false;
    }
  }

  private async check(): Promise<void> {
    if (document.hidden) return;
    try {
      this.noteDaemon(await api.daemon());
    } catch (error) {
      if (!(error instanceof api.RequestFailed)) throw error;
      this.markLost();
      return;
    }
    if (this.followsAll) {
      if (this.connection.peek() === "lost") this.reconnect();
    } else if (this.daemon.peek()?.fleet) {
      this.connection.value = "live";
    }
  }

  /**
   * Reconnect if the daemon restarted: its store may differ, so the stream must start over. The
   * replicas of a fleet's server answer in turn, from one store.
   */
  private noteDaemon(daemon: DaemonStatus): void {
    const before = this.daemon.peek();
    this.daemon.value = daemon;
    const restarted = before?.pid !== daemon.pid || before.since !== daemon.since;
    if (before !== null && restarted && !daemon.fleet) this.reconnect();
  }
}

/** A session; undefined if the daemon does not know it or does not answer. */
function fetchSession(id: string): Promise<SessionView | undefined> {
  return api.session(id).catch(ignoreFailure);
}

function ignoreFailure(error: unknown): undefined {
  if (!(error instanceof api.RequestFailed)) throw error;
}
