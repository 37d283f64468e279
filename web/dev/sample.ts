/** Fake sessions: every level, every state, and hostile text. */

import type { SessionView, ThreadView } from "../src/api-types.ts";

export const AGENTS = ["claude", "codex", "pi", "gemini", "opencode"];
const MODELS: Record<string, string> = {
  claude: "claude-opus-5-5",
  codex: "gpt-5.3-codex",
  pi: "claude-sonnet-5",
  gemini: "gemini-3-pro-preview",
  opencode: "kimi-k3",
};
const WINDOWS: Record<string, number> = {
  claude: 200_000,
  codex: 272_000,
  pi: 200_000,
  gemini: 1_048_576,
  opencode: 262_144,
};
const PROJECTS = [
  "atlas",
  "ledger",
  "harbour",
  "website",
  "parser-rs",
  "infra",
  "mobile-app",
  "research",
];
const TITLES = [
  "Move the billing jobs to the new queue",
  "Fix flaky login test",
  "Explain the parser",
  null,
  "Release 4.2",
  "Find the slow query behind the report page",
];
const HOSTS = ["workstation", "build-3", "laptop"];
const HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>";

/** One occupancy of each kind. */
const FIRST = [61, 130, 100, 80, 79.9, 50, 49.9, 83.6, 0, 23.4, 12];

function pick<T>(of: readonly T[], at: number): T {
  return of[at % of.length] as T;
}

export function threadRow(
  session: string,
  thread: string,
  window: number,
  percent: number | null,
  at: number,
  state: string = "measured",
): ThreadView {
  const sent = percent === null ? null : Math.round((window * percent) / 100);
  const held = sent === null ? null : sent + 900;
  const limit = Math.round(window * 0.835);
  return {
    session,
    thread,
    title: null,
    loop: null,
    kept: null,
    branch: null,
    cycle: state === "unknown" ? 2 : 1,
    seq: 40,
    source: "status line",
    state,
    at,
    sent,
    held,
    window,
    window_why: "reported by the client",
    window_origin: "reported",
    limit,
    limit_origin: "known",
    limit_why: "known: auto-compact window - min(max output, 20,000) - 13,000",
    percent: percent === null ? null : Math.min(100, Math.round(percent * 10) / 10),
    percent_raw: percent === null ? null : Math.round(percent * 10) / 10,
    percent_of_limit: held === null ? null : Math.round((held / limit) * 1000) / 10,
    peak_sent: sent,
    calls: 40,
    model: "claude-opus-5-5",
    pending: null,
    calls_left: null,
    levels: [50, 65],
    fullness: fullnessOf(percent),
    pending_level: percent !== null && percent >= 65 && session.length % 2 ? 65 : null,
  };
}

function fullnessOf(percent: number | null): ThreadView["fullness"] {
  if (percent === null) return null;
  if (percent >= 83) return "limit";
  return percent < 50 ? "low" : percent < 65 ? "medium" : "high";
}

function trendTo(sent: number | null): number[] {
  if (sent === null) return [];
  return Array.from({ length: 40 }, (_, at) => Math.round(sent * (0.2 + 0.8 * (at / 39) ** 1.3)));
}

/** One session: the first ones show every case, the others are random. */
export function sample(at: number, now: number): SessionView {
  const agent = pick(AGENTS, at);
  const id = `${agent}-${String(at).padStart(4, "0")}-7d1f-4c0e`;
  const window = WINDOWS[agent] ?? 200_000;
  const state: string =
    at === 11 ? "unknown" : at === 7 ? "compacting" : at % 5 === 0 ? "streaming" : "measured";
  const percent = state === "unknown" ? null : (FIRST[at] ?? (at * 37) % 97);
  const seen = at === 9 ? now - 3 * 3_600 : now - (at % 50);
  const main = threadRow(id, "main", window, percent, seen, state);
  const subagents = at % 4 === 0 ? [34, 71, 12.5, 55, 90, 8].slice(0, 1 + (at % 6)) : [];
  return {
    session: {
      id,
      agent,
      seen_at: seen,
      host: pick(HOSTS, at),
      project: at === 10 ? `/home/me/${HOSTILE}` : `/home/me/src/${pick(PROJECTS, at)}`,
      model: at === 10 ? HOSTILE : (MODELS[agent] ?? null),
      version: "2.1.325",
      title: at === 10 ? HOSTILE : pick(TITLES, at),
      transcript: `/home/me/.claude/projects/${id}.jsonl`,
      parent: null,
      ended_at: at === 12 ? now - 600 : null,
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
      is_fork: at % 9 === 4,
    },
    threads: [
      main,
      ...subagents.map((full, which) =>
        threadRow(id, `agent-${(which + 17) * 7919}`, window, full, seen),
      ),
    ],
    levels: [50, 65],
    limit_at: agent === "opencode" ? null : 83.5,
    trend: trendTo(main.sent),
    handoff: {
      state: pick(["none", "fresh", "old", "draft"] as const, at + 1),
      at: now - 900,
      path: "/home/me/handoff.md",
      calls_since: at % 9,
    },
    unread: at % 6 === 1 ? (at % 3) + 1 : 0,
    undeliverable: null,
    cost: at % 7 === 0 ? null : at * 0.37,
    budget: null,
    calls_left: at % 3 === 0 ? 4 + (at % 20) : null,
    calls_left_range: percent === null ? null : [2, 25],
    last_handoff_path: null,
    resume_command: null,
    quotas: at % 5 ? null : sampleQuotas(now),
    prompt_cache: at % 5 ? null : sampleCache(now, main.sent),
    ...sampleNeed(main),
  };
}

function sampleNeed(
  main: ThreadView,
): Pick<SessionView, "need" | "ends" | "rank" | "is_near_limit"> {
  const isNear = main.fullness === "high" || main.fullness === "limit";
  const ask = `ask for a handoff (\`brimline handoff --ask ${main.session.slice(0, 8)}\`).`;
  return {
    ends: [
      {
        kind: "compaction",
        text: `of limit ${main.percent_of_limit}%`,
        used: main.percent_of_limit,
        at: null,
        is_urgent: isNear,
      },
    ],
    need: isNear ? { kind: "level", text: `About 7 calls left: ${ask}` } : null,
    rank: [isNear ? 0 : 1, 2, -(main.percent_of_limit ?? -1)],
    is_near_limit: isNear,
  };
}

function sampleQuotas(now: number): SessionView["quotas"] {
  return {
    at: now - 40,
    five_hour: { used_percentage: 62, resets_at: now + 7_200 },
    seven_day: { used_percentage: 41.5, resets_at: now + 4 * 86_400 },
    spend_limit: null,
  };
}

function sampleCache(now: number, sent: number | null): SessionView["prompt_cache"] {
  return {
    origin: "reported",
    at: now - 40,
    warm: true,
    caching_observed: true,
    ttl: "1h",
    expires_at: now + 3_560,
    requests: 40,
    misses: 1,
    expected_rebuilds: 0,
    hit_ratio: 0.914,
    cache_write_tokens: 210_000,
    miss_recache_tokens: 48_000,
    last_miss_at: now - 900,
    last_miss_cause: { causes: ["tools_changed"] },
    miss_causes: { tools_changed: 1 },
    recache_tokens_if_cold: sent,
  };
}

/** The session a little later: fuller, or compacted after its limit. */
export function later(view: SessionView, now: number): SessionView {
  const [main, ...rest] = view.threads;
  if (!main || main.window === null) return view;
  const full = main.percent_raw === null ? 18 : main.percent_raw + 0.4 + Math.random();
  const over = main.percent_raw !== null && full > 84;
  const next = threadRow(
    main.session,
    "main",
    main.window,
    over ? null : full,
    now,
    over ? "unknown" : "streaming",
  );
  const trend = next.sent === null ? [] : [...view.trend, next.sent].slice(-60);
  return {
    ...view,
    session: { ...view.session, seen_at: now },
    threads: [
      {
        ...next,
        seq: main.seq + 1,
        cycle: over ? main.cycle + 1 : main.cycle,
        calls: main.calls + 1,
      },
      ...rest,
    ],
    trend,
  };
}
