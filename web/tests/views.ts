/** Sessions for the tests, with only what a test is about said. */

import type { CallRow, SessionRow, SessionView, ThreadView, Timeline } from "../src/api-types";

export const NOW = 1_800_000_000;

export function threadRow(part: Partial<ThreadView> = {}): ThreadView {
  return {
    session: "s",
    thread: "main",
    cycle: 0,
    seq: 1,
    source: "transcript",
    state: "measured",
    at: NOW,
    sent: 50_000,
    held: 51_000,
    window: 200_000,
    window_why: null,
    window_origin: null,
    limit_origin: null,
    title: null,
    loop: null,
    kept: null,
    branch: null,
    limit: null,
    limit_why: null,
    percent: 25,
    percent_raw: 25,
    percent_of_limit: null,
    peak_sent: 50_000,
    calls: 3,
    model: null,
    pending: null,
    calls_left: null,
    levels: [50, 65],
    fullness: "low",
    pending_level: null,
    ...part,
  };
}

/** A thread that is so full, in per cent of its window. */
export function full(percent: number, part: Partial<ThreadView> = {}): ThreadView {
  return threadRow({ percent: Math.min(100, percent), percent_raw: percent, ...part });
}

export function view(
  session: Partial<SessionRow> = {},
  threads: ThreadView[] = [threadRow()],
  part: Partial<SessionView> = {},
): SessionView {
  return {
    session: {
      id: "s",
      agent: "claude",
      seen_at: NOW,
      host: null,
      project: null,
      model: null,
      version: null,
      title: null,
      transcript: null,
      parent: null,
      ended_at: null,
      became: null,
      became_at: null,
      problem: null,
      manager_id: null,
      user: null,
      team: null,
      machine: null,
      receive: null,
      client_report: null,
      env: null,
      is_fork: false,
      ...session,
    },
    threads,
    levels: [50, 65],
    limit_at: null,
    trend: [],
    handoff: { state: "none", at: null, path: null, calls_since: null },
    unread: 0,
    undeliverable: null,
    calls_left: null,
    calls_left_range: null,
    cost: null,
    budget: null,
    last_handoff_path: null,
    resume_command: null,
    quotas: null,
    prompt_cache: null,
    need: null,
    ends: [],
    rank: [1, 0, -(threads[0]?.percent_raw ?? -1)], // active, the fullest first
    is_near_limit: false,
    ...part,
  };
}

export function call(id: string, part: Partial<CallRow> = {}): CallRow {
  return {
    session: "s",
    thread: "main",
    call: id,
    seq: 1,
    cycle: 0,
    input: 1,
    cache_read: 10,
    cache_write: 100,
    cache_write_1h: 0,
    branch: null,
    counted: true,
    cost: null,
    miss_cost: null,
    output: 1_000,
    model: "m",
    at: NOW,
    ...part,
  };
}

export function timeline(part: Partial<Timeline> = {}): Timeline {
  return {
    calls: [],
    compactions: [],
    signals: [],
    messages: [],
    handoffs: [],
    cost: null,
    misses: [],
    ...part,
  };
}
