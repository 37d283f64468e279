/** What the daemon serves, as its OpenAPI document has it. Times are Unix seconds; null is unknown. */

export interface SessionRow {
  id: string;
  agent: string;
  seen_at: number;
  host: string | null;
  project: string | null;
  model: string | null;
  version: string | null;
  title: string | null;
  transcript: string | null;
  parent: string | null;
  ended_at: number | null;
  /** The session that it went on as when it was cleared. */
  became: string | null;
  became_at: number | null;
}

export type ThreadState = "measured" | "streaming" | "unknown" | "stale" | "compacting";

export interface ThreadRow {
  session: string;
  thread: string;
  cycle: number;
  seq: number;
  source: string;
  state: ThreadState;
  at: number | null;
  sent: number | null;
  held: number | null;
  window: number | null;
  window_why: string | null;
  limit: number | null;
  limit_why: string | null;
  percent: number | null;
  percent_raw: number | null;
  percent_of_limit: number | null;
  peak_sent: number | null;
  calls: number;
  model: string | null;
}

export type HandoffState = "none" | "fresh" | "old" | "draft";

export interface HandoffNow {
  state: HandoffState;
  at: number | null;
  path: string | null;
  calls_since: number | null;
}

export interface SessionView {
  session: SessionRow;
  threads: ThreadRow[];
  levels: number[];
  limit_at: number | null;
  trend: number[];
  handoff: HandoffNow;
  unread: number;
  calls_left: number | null;
  last_handoff_path: string | null;
}

/** What changed in a session: the stream's event `change`. A field that is absent did not change. */
export interface SessionChange extends Partial<Omit<SessionView, "session" | "threads" | "trend">> {
  id: string;
  session?: Partial<SessionRow>;
  /** The changed fields by thread; or all threads, if one is new or their order changed. */
  threads?: Record<string, Partial<ThreadRow>> | ThreadRow[];
  /** So many points stay, these follow. */
  trend?: { keep: number; add: number[] };
}

export interface CallRow {
  session: string;
  thread: string;
  call: string;
  seq: number;
  cycle: number;
  input: number;
  cache_read: number;
  cache_write: number;
  output: number;
  model: string | null;
  at: number | null;
}

export interface CompactionRow {
  session: string;
  thread: string;
  cycle: number;
  at: number | null;
  trigger: string | null;
  before: number | null;
  after: number | null;
  model: string | null;
  version: string | null;
  inferred: boolean;
}

export interface SignalRow {
  session: string;
  thread: string;
  cycle: number;
  kind: string;
  at: number;
  level: number;
  text: string;
  sent: number | null;
  percent: number | null;
}

export type MessageState = "queued" | "handed" | "delivered" | "cancelled" | "expired";

export interface Message {
  id: string;
  session: string;
  text: string;
  at: number;
  order: number;
  urgency: "sequential" | "urgent";
  sender: string;
  thread: string | null;
  cycle: number | null;
  level: number | null;
  expires: number | null;
  state: MessageState;
  handed_at: number | null;
}

export interface HandoffHead {
  id: string;
  at: number;
  path: string;
  author: string;
  cycle: number;
  calls: number;
  draft: boolean;
  used_at: number | null;
}

export interface HandoffRow extends HandoffHead {
  session: string;
  sha256: string;
  text: string;
}

export interface Timeline {
  calls: CallRow[];
  compactions: CompactionRow[];
  signals: SignalRow[];
  messages: Message[];
  handoffs: HandoffHead[];
}

/** The historic formulas by name: a value for each call of the main thread, in its order. */
export type Formulas = Record<string, (number | null)[]>;

export interface Usage {
  input: number;
  cache_read: number;
  cache_write: number;
  output: number;
}

export interface Day {
  day: string;
  sessions: number;
  calls: number;
  peak_sent: number | null;
  compactions: number;
  usage: Usage;
  cost: number | null;
}

export interface LearnedLimit {
  agent: string;
  model: string | null;
  version: string | null;
  compactions: number;
  auto: number;
  lowest: number | null;
  median: number | null;
  highest: number | null;
}

export interface PastSession {
  session: string;
  agent: string;
  project: string | null;
  title?: string | null;
  model: string | null;
  first: number | null;
  last: number | null;
  calls: number;
  peak_sent: number | null;
  compactions: number;
  cost: number | null;
}

export interface History {
  days: Day[];
  limits: LearnedLimit[];
  sessions: PastSession[];
}

/** Something that happened to the store's file; `kept` is where that file is now. */
export interface StoreProblem {
  at: number;
  what: string;
  kept: string | null;
  advice: string;
}

export interface Daemon {
  version: string;
  pid: number;
  since: number;
  address: string;
  heard: number;
  malformed: number;
  dropped: number;
  demo: boolean;
  problems: StoreProblem[];
}
