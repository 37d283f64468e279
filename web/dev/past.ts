/** Fake timelines, handoffs and history. */

import type { Formulas } from "../src/api.ts";
import type {
  CallRow,
  Explanation,
  HandoffRow,
  History,
  HistoryPeriod,
  SessionView,
  Split,
  Timeline,
} from "../src/api-types.ts";

const STEP = 47;

export const DOCUMENT = `# Handoff: billing jobs

## Where we are
- The **queue** is moved; \`jobs/billing.py\` still reads the old one.
- Tests pass but for \`test_retry\`.

## Next
1. Point \`consume()\` at the new queue.
2. Delete the old worker, *after* the release.

\`\`\`python
def consume(queue: Queue) -> None:
    for job in queue:
        run(job)
\`\`\`

> Ask before the migration is run.

<script>alert("never run")</script> <img src=x onerror=alert(3)> [a link](javascript:alert(4))
`;

function calls(view: SessionView, now: number): CallRow[] {
  const window = view.threads[0]?.window ?? 200_000;
  const rows: CallRow[] = [];
  const begin = now - 150 * STEP;
  const call = (
    thread: string,
    at: number,
    cycle: number,
    sent: number,
    which: number,
  ): CallRow => {
    const write = 400 + ((which * 977) % 3_000);
    return {
      session: view.session.id,
      thread,
      call: `msg_${thread.slice(0, 4)}${String(which).padStart(5, "0")}`,
      seq: which,
      cycle,
      input: 3 + (which % 9),
      cache_read: Math.max(0, sent - write - 3 - (which % 9)),
      cache_write: write,
      cache_write_1h: 0,
      branch: null,
      counted: true,
      output: 120 + ((which * 331) % 1_800),
      cost: null,
      miss_cost: null,
      model: which > 118 && thread === "main" ? "claude-sonnet-5" : view.session.model,
      at,
    };
  };
  for (let at = 0; at < 150; at += 1) {
    const cycle = at < 70 ? 0 : 1;
    const since = at < 70 ? at : at - 70;
    const sent = Math.round(window * (0.11 + since * 0.0103 + ((at * 13) % 7) * 0.0015));
    rows.push(call("main", begin + at * STEP, cycle, sent, at));
  }
  for (const [which, thread] of view.threads
    .slice(1)
    .map((row) => row.thread)
    .entries()) {
    for (let at = 0; at < 22; at += 1) {
      rows.push(
        call(
          thread,
          begin + (30 + which * 25 + at) * STEP + 11,
          0,
          Math.round(window * (0.05 + at * 0.017)),
          at,
        ),
      );
    }
  }
  return rows;
}

export function timelineOf(view: SessionView, now: number): Timeline {
  const session = view.session.id;
  const window = view.threads[0]?.window ?? 200_000;
  const at = (call: number) => now - (150 - call) * STEP + 5;
  const common = { session, thread: "main", text: "", sent: null, percent: null, arm: 0 };
  return {
    calls: calls(view, now),
    cost: 4.2,
    misses: [
      {
        call: "msg_main00090",
        number: 91,
        at: at(90),
        tokens: 61_400,
        cost: 0.58,
        idle_s: 4_020,
        cause: "idle longer than the cache lives",
        reported: "ttl_expired_1h",
        thread: "main",
      },
    ],
    compactions: [
      {
        session,
        thread: "main",
        cycle: 0,
        at: at(69),
        trigger: "auto",
        before: Math.round(window * 0.836),
        after: Math.round(window * 0.112),
        model: view.session.model,
        version: "2.1.325",
        inferred: false,
        overflow: false,
      },
    ],
    signals: [
      {
        ...common,
        cycle: 0,
        kind: "level",
        at: at(38),
        level: 50,
        sent: Math.round(window * 0.503),
        percent: 50.3,
      },
      {
        ...common,
        cycle: 0,
        kind: "level",
        at: at(53),
        level: 65,
        sent: Math.round(window * 0.652),
        percent: 65.2,
      },
      { ...common, cycle: 0, kind: "compacted", at: at(69), level: 0 },
      {
        ...common,
        cycle: 1,
        kind: "level",
        at: at(108),
        level: 50,
        sent: Math.round(window * 0.5),
        percent: 50,
      },
    ],
    messages: [
      {
        id: "m1",
        session,
        text: "50% of the window is used; 66K are left until the compaction.",
        at: at(38),
        order: 1,
        urgency: "sequential",
        sender: "brimline",
        thread: "main",
        cycle: 0,
        level: 50,
        expires: null,
        state: "delivered",
        handed_at: at(39),
        blocks_stop: false,
      },
      {
        id: "m2",
        session,
        text: "<b>Please</b> do not touch the migration today.",
        at: at(90),
        order: 2,
        urgency: "urgent",
        sender: "user",
        thread: null,
        cycle: null,
        level: null,
        expires: null,
        state: "delivered",
        handed_at: at(91),
        blocks_stop: false,
      },
      {
        id: "m3",
        session,
        text: "When done, look at the report page.",
        at: at(140),
        order: 3,
        urgency: "sequential",
        sender: "user",
        thread: null,
        cycle: null,
        level: null,
        expires: null,
        state: "queued",
        handed_at: null,
        blocks_stop: false,
      },
    ],
    handoffs: handoffsOf(view, now).map(({ text: _, session: __, sha256: ___, ...head }) => head),
  };
}

export function handoffsOf(view: SessionView, now: number): HandoffRow[] {
  if (view.handoff.state === "none") return [];
  const at = now - 95 * STEP;
  const common = {
    session: view.session.id,
    path: "/home/me/src/atlas/handoff.md",
    sha256: "9f2c",
    author: "agent",
    cycle: 0,
    calls: 55,
  };
  return [
    {
      ...common,
      id: "h2",
      at: at + 60 * STEP,
      text: DOCUMENT,
      draft: view.handoff.state === "draft",
      used_at: null,
    },
    {
      ...common,
      id: "h1",
      at,
      text: "# Earlier\n\nThe first document.",
      draft: false,
      used_at: now - 80 * STEP + 30,
    },
  ];
}

export function formulasOf(view: SessionView, now: number): Formulas {
  const main = calls(view, now).filter((call) => call.thread === "main");
  let sums = 0;
  let creation = 0;
  let most = 0;
  const series: Formulas = {
    latest: [],
    max_cache_read_plus_sums: [],
    sum_cache_creation: [],
    last_input: [],
    result_sums: [],
    effective: [],
  };
  for (const call of main) {
    sums += call.input + call.output;
    creation += call.cache_write;
    most = Math.max(most, call.cache_read);
    const sent = call.input + call.cache_read + call.cache_write;
    series.latest?.push(sent);
    series.max_cache_read_plus_sums?.push(most + sums);
    series.sum_cache_creation?.push(creation);
    series.last_input?.push(call.input);
    series.result_sums?.push(null);
    series.effective?.push(Math.round(sent - 0.9 * call.cache_read));
  }
  return series;
}

function split(key: string, part: number): Split {
  return {
    key,
    sessions: Math.ceil(83 * part),
    calls: Math.ceil(9_120 * part),
    compactions: Math.ceil(61 * part),
    sent: Math.round(810_000_000 * part),
    output: Math.round(11_000_000 * part),
    cost: 412.7 * part,
    misses: {
      calls: Math.ceil(140 * part),
      tokens: Math.round(9_400_000 * part),
      cost: 38.2 * part,
    },
  };
}

function projectsOf(part: number): Split[] {
  return ["shop", "docs-site", "warehouse"].map((name, at) =>
    split(`/home/dev/work/${name}`, part * (0.5 - at / 6)),
  );
}

export function periodsOf(now: number): HistoryPeriod[] {
  return Array.from({ length: 30 }, (_, back) => {
    const key = new Date((now - (29 - back) * 86_400) * 1000).toISOString().slice(0, 10);
    const part = ((back * 7) % 11) / 165;
    return { key, total: split("total", part), peak_sent: 60_000, parts: projectsOf(part) };
  });
}

export function historyOf(views: SessionView[], now: number): History {
  const days = Array.from({ length: 30 }, (_, back) => {
    const busy = (back * 7) % 11;
    return {
      day: new Date((now - (29 - back) * 86_400) * 1000).toISOString().slice(0, 10),
      sessions: 2 + busy,
      calls: 120 + busy * 77,
      peak_sent: 60_000 + busy * 21_000,
      compactions: busy % 5,
      usage: {
        input: 9_000 + busy * 400,
        cache_read: 12_000_000 + busy * 3_000_000,
        cache_write: 900_000 + busy * 90_000,
        cache_write_1h: 0,
        output: 240_000 + busy * 30_000,
      },
      cost: back === 3 ? null : 7.4 + busy * 1.93,
      misses: {
        calls: busy % 4,
        tokens: (busy % 4) * 71_000,
        cost: back === 3 ? null : (busy % 4) * 0.67,
      },
    };
  });
  const limits = [
    {
      agent: "claude",
      model: "claude-opus-5-5",
      version: "2.1.325",
      compactions: 31,
      auto: 28,
      lowest: 166_890,
      median: 167_204,
      highest: 168_011,
      drift: null,
    },
    {
      agent: "claude",
      model: "claude-sonnet-5",
      version: "2.1.310",
      compactions: 7,
      auto: 4,
      lowest: 91_300,
      median: 166_950,
      highest: 167_900,
      drift: null,
    },
    {
      agent: "codex",
      model: "gpt-5.3-codex",
      version: "0.121.0",
      compactions: 12,
      auto: 12,
      lowest: 244_100,
      median: 244_790,
      highest: 251_002,
      drift: null,
    },
    {
      agent: "opencode",
      model: null,
      version: null,
      compactions: 1,
      auto: 0,
      lowest: null,
      median: null,
      highest: null,
      drift: null,
    },
  ];
  const sessions = views.map(({ session, threads }, at) => ({
    session: session.id,
    agent: session.agent,
    project: session.project,
    title: session.title,
    model: session.model,
    first: now - 86_400 * (at % 9),
    last: session.seen_at,
    calls: 20 + ((at * 31) % 300),
    peak_sent: threads[0]?.peak_sent ?? null,
    compactions: at % 4,
    cost: at % 7 === 6 ? null : 0.31 * (at % 23),
  }));
  const projects = projectsOf(1);
  const branches = ["shop: main", "shop: feature/basket", "docs-site: main"].map((name, at) =>
    split(`/home/dev/work/${name}`, 0.4 - at / 10),
  );
  const models = [split("claude-opus-5-5", 0.7), split("gpt-5.3-codex", 0.3)];
  const agents = [split("claude", 0.7), split("codex", 0.3)];
  const total = split("total", 1);
  const compact_at = {
    settings: [
      {
        agent: "claude",
        model: "claude-opus-5-5",
        limit: 120_000,
        window: 200_000,
        at: now - 3 * 86_400,
        verdict: "works" as const,
        text: "works: the last 3 compacted at 61, 60, 62% of the window",
      },
    ],
    problem: null,
  };
  return { days, limits, compact_at, sessions, total, projects, branches, models, agents };
}

const CATEGORY_NAMES = [
  "system and tools",
  "user words",
  "agent's words",
  "tool calls",
  "tool results",
];
const SHARES = [0.2, 0.05, 0.1, 0.15, 0.48];

/** What fills a session, with fixed shares. */
export function explanationOf(view: SessionView, now: number): Explanation {
  const calls = timelineOf(view, now).calls.filter((call) => call.thread === "main");
  const series = calls.map((row) => {
    const sent = row.input + row.cache_read + row.cache_write;
    const categories = SHARES.map((share) => Math.floor(share * sent));
    const unexplained = sent - categories.reduce((sum, tokens) => sum + tokens, 0);
    return { call: row.call, at: row.at, sent, categories, unexplained, tools: ["Read", "Bash"] };
  });
  const last = series.at(-1);
  const categories = CATEGORY_NAMES.map((name, at) => {
    const tokens = last?.categories[at] ?? 0;
    const half = { what: `Read /home/dev/shop/src/${name}.py`, call: last?.call ?? "", record: 7 };
    const pieces = [
      { ...half, tokens: tokens - Math.floor(tokens / 3) },
      { ...half, what: `<b>${name}</b>`, tokens: Math.floor(tokens / 3) },
    ];
    return { name, tokens, pieces, note: null };
  });
  const main = {
    thread: "main",
    model: view.session.model,
    sent: last?.sent ?? null,
    categories,
    system_parts: [],
    answered_at: null,
    unexplained: last?.unexplained ?? 0,
    tool_results: { by_tool: [], by_server: [], by_file: [], by_command: [] },
    waste: [],
    waste_total: null,
    misses: [],
    pending: 1_200,
    cycles: [],
    series,
  };
  const { agent, id } = view.session;
  const known = { agent, session_id: id, category_names: CATEGORY_NAMES, problem: null };
  return { ...known, threads: series.length > 0 ? [main] : [] };
}
