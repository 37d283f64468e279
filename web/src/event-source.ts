/** The client of the daemon's event stream; reconnects whenever the stream ends. */

import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import * as api from "./api";
import type { DaemonStatus, SessionChange, SessionView } from "./api-types";
import { LIVE_FOR_S } from "./reading";
import { PAGE_SIZE, SessionPages } from "./state/session-pages";
import type { SessionStore } from "./state/session-store";
import { StreamBuffer } from "./state/stream-buffer";
import { throttleByKey } from "./state/throttle";

const REDRAW_INTERVAL_MS = 500;
const MIN_RETRY_MS = 1_000;
const MAX_RETRY_MS = 15_000;
/** The daemon is checked this often: EventSource does not report the stream's heartbeat. */
const CHECK_INTERVAL_MS = 20_000;

/** Of sessions that are not loaded, changes are loaded this often, each alone if they are few. */
const UNKNOWN_INTERVAL_MS = 2_000;
const MAX_SINGLE_LOADS = 10;

/** Sessions this close to the age limit are kept: clocks differ and requests take time. */
const CLOCK_SLACK_S = 60;

export type Connection = "connecting" | "live" | "lost";

export class SessionEventSource {
  readonly connection = signal<Connection>("connecting");
  readonly daemon = signal<DaemonStatus | null>(null);
  /** When the connection was lost, in seconds; null while it is there. */
  readonly lostAt = computed(() => (this.connection.value === "lost" ? Date.now() / 1000 : null));
  readonly pages: SessionPages;
  private stream: EventSource | null = null;
  private retryDelayMs = MIN_RETRY_MS;
  private includesPast = false;
  /** Whether the stream was opened: a fleet's server may have too many sessions to follow all. */
  private followsAll = false;
  private retryTimer: number | undefined;
  private readonly buffer: StreamBuffer;
  private readonly askLater: (unknown: Unknown) => void;
  /** Whether there is a view of all sessions; without one the list is not kept up to date. */
  private wantsAll: ReadonlySignal<boolean> = signal(false);
  private isOutdated = false;

  constructor(board: SessionStore) {
    const later = throttleByKey<SessionView>(
      (view) => view.session.id,
      (views) => this.buffer.flush(views),
      REDRAW_INTERVAL_MS,
    );
    this.pages = new SessionPages(board, api.sessionPage);
    this.askLater = throttleByKey(
      ({ id }) => id,
      (unknown) => this.loadUnknown(unknown),
      UNKNOWN_INTERVAL_MS,
    );
    const load = (id: string) =>
      new Promise<SessionView | undefined>((resolve) => this.askLater({ id, resolve }));
    this.buffer = new StreamBuffer(board, later, load);
  }

  /**
   * Connect, and reconnect after sleep, network loss or a restart of the daemon. At a fleet's
   * server this waits until `wantsAll`: until then, views load the sessions that they show.
   */
  async start(wantsAll: ReadonlySignal<boolean>, onFleet: () => void): Promise<void> {
    this.wantsAll = wantsAll;
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
    effect(() => {
      if (wantsAll.value && this.isOutdated) this.refresh();
    });
  }

  /** Whether changes of sessions arrive by themselves. */
  get isFollowing(): boolean {
    return this.followsAll;
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

  /** The path of the list: of a fleet its first page, the most urgent sessions. */
  private listPath(): string {
    if (this.daemon.peek()?.fleet) return `/v1/sessions?since=24h&order=need&limit=${PAGE_SIZE}`;
    return `/v1/sessions?since=${this.includesPast ? "all" : "24h"}`;
  }

  /** Load sessions whose changes the stream sends, and which are not loaded. */
  private loadUnknown(unknown: Unknown[]): void {
    if (unknown.length <= MAX_SINGLE_LOADS) {
      for (const { id, resolve } of unknown) resolve(api.session(id).catch(api.ignoreFailure));
      return;
    }
    if (this.pages.isRunning) {
      unknown.forEach(this.askLater);
      return;
    }
    for (const { resolve } of unknown) resolve(undefined);
    if (this.wantsAll.peek()) this.refresh();
    else this.isOutdated = true;
  }

  /** Load the list again while the stream is open: what is loaded is up to date. */
  private refresh(): void {
    this.isOutdated = false;
    this.pages.reload(this.listPath(), null).catch(api.ignoreFailure);
  }

  /**
   * Load the sessions again, of a fleet as many pages as before: the stream does not report deleted
   * sessions or another store. Returns whether the daemon answered.
   */
  private async loadSnapshot(): Promise<boolean> {
    const from = this.includesPast ? 0 : Date.now() / 1000 - LIVE_FOR_S + CLOCK_SLACK_S;
    try {
      const shown = this.pages.reload(this.listPath(), from);
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

/** A session that is not loaded; `resolve` takes it, undefined if the daemon has none. */
interface Unknown {
  id: string;
  resolve: (view: Promise<SessionView | undefined> | undefined) => void;
}
