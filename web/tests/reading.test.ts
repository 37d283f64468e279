import { expect, test } from "vitest";
import type { ThreadView } from "../src/api-types";
import {
  barText,
  cacheText,
  callsLeftText,
  causeText,
  endText,
  headline,
  isLive,
  isOverWindow,
  lastActiveAt,
  lastCallAt,
  levelOf,
  noForecastReason,
  projectNames,
  quotaText,
  secondsSinceFirstCall,
  stateOf,
  stateText,
} from "../src/reading";
import { full, NOW, threadRow, view } from "./views";

test("the level of a thread is the one that the server computed", () => {
  expect(levelOf(full(42, { fullness: "limit" }))).toBe("limit");
  expect(levelOf(full(84, { fullness: "low" }))).toBe("low");
  expect(barText(full(84, { fullness: "low" }), null)).toContain("low");
});

test("a level whose message was not delivered is named", () => {
  expect(barText(full(55, { pending_level: 50 }), null)).toContain("message of level 50%");
  expect(barText(full(55), null)).not.toContain("message");
});

test("an unknown occupancy has no level and is not shown as empty", () => {
  const unknown = threadRow({ percent: null, percent_raw: null, sent: null, fullness: null });
  expect(levelOf(unknown)).toBe("unknown");
  expect(levelOf(undefined)).toBe("unknown");
  expect(barText(unknown, 80)).toBe("Context unknown");
});

test("an overshoot is shown as it is, and named", () => {
  expect(isOverWindow(full(100))).toBe(false);
  expect(isOverWindow(full(130))).toBe(true);
  expect(barText(full(130), null)).toContain("130.0%! of the window");
  expect(barText(full(130), null)).toContain("more than the window");
});

test("the limit is named with its tokens and its place in the window", () => {
  expect(barText(full(55, { limit: 158_400 }), 94.7)).toContain("limit: 158K, 94.7% of the window");
  expect(barText(full(55), null)).toContain("limit unknown");
});

test("the headline is the title, else the folder, else the start of the id", () => {
  const id = "3f1a0000-7d1f-4c0e";
  const named = (title: string | null, project: string | null) => headline({ id, title, project });
  expect(named("Fix the login", "/src/shop")).toBe("Fix the login");
  expect([named(null, "/src/shop/"), named("", "/")]).toEqual(["shop", "/"]);
  expect(named(null, null)).toBe("3f1a0000");
});

test("a missing forecast has its reason", () => {
  const reason = (thread: Partial<ThreadView>, trend: number[] = []) =>
    noForecastReason(view({}, [threadRow(thread)], { trend }));
  expect(reason({ state: "compacting" })).toBe("compacting now");
  expect(reason({ sent: null })).toBe("awaiting the first reply");
  expect(reason({ sent: null, cycle: 1 })).toBe("awaiting the next reply");
  expect(reason({ limit: null })).toBe("the limit is unknown");
  expect(reason({ limit: 158_000 }, [1, 2, 3, 4, 5, 6])).toBe("too few calls");
  expect(reason({ limit: 158_000 }, [1, 2, 3, 4, 5, 6, 7])).toBe("slow growth");
});

test("calls left are a number, or why there is none", () => {
  const words = (calls_left: number | null) =>
    callsLeftText(view({}, [threadRow({ limit: 158_000 })], { calls_left, trend: [] }));
  expect(words(1)).toBe("about 1 call left");
  expect(words(12)).toBe("about 12 calls left");
  expect(words(0)).toBe("no calls left");
  expect(words(null)).toBe("too few calls");
});

test("a session is stale after an hour without events", () => {
  const old = view({ seen_at: NOW - 7_200 }, [threadRow({ at: NOW - 7_200 })]);
  expect(stateOf(old, NOW)).toBe("stale");
  expect(stateText(old, NOW)).toBe("stale, 2 h");
  const subagent = threadRow({ thread: "agent-1", at: NOW - 10 });
  expect(stateOf({ ...old, threads: [...old.threads, subagent] }, NOW)).toBe("measured");
});

test("a session's age is that of its main thread's last call, else since it was last seen", () => {
  const called = threadRow({ at: NOW - 600 });
  const subagent = threadRow({ thread: "agent-1", at: NOW - 10 });
  expect(lastCallAt(view({ seen_at: NOW }, [called, subagent]))).toBe(NOW - 600);
  expect(lastCallAt(view({ seen_at: NOW - 5 }, [threadRow({ at: null })]))).toBe(NOW - 5);
  expect(lastActiveAt(view({ seen_at: NOW }, [called, subagent]))).toBe(NOW - 10);
  expect(lastActiveAt(view({ seen_at: NOW - 5 }, []))).toBe(NOW - 5);
});

test("an unknown state says whether the first reply or the next one is missing", () => {
  const before = view({}, [threadRow({ state: "unknown", cycle: 0 })]);
  const after = view({}, [threadRow({ state: "unknown", cycle: 1 })]);
  expect(stateText(before, NOW)).toBe("awaiting first reply");
  expect(stateText(after, NOW)).toBe("awaiting next reply");
  const drifted = view({ problem: "Update Brimline." }, [threadRow({ state: "unknown" })]);
  expect(stateText(drifted, NOW)).toBe("unreadable");
});

test("a session that ended or had no events for a day is not live", () => {
  expect(isLive(view(), NOW)).toBe(true);
  expect(isLive(view({ ended_at: NOW }), NOW)).toBe(false);
  expect(isLive(view(), NOW + 90_000)).toBe(false);
  expect(stateOf(view({ ended_at: NOW }), NOW)).toBe("ended");
});

test("a session's duration is from its first call with a time to its last event", () => {
  expect(secondsSinceFirstCall(view(), [])).toBeNull();
  expect(secondsSinceFirstCall(view(), [{ at: null }])).toBeNull();
  expect(secondsSinceFirstCall(view(), [{ at: NOW - 5 }, { at: null }, { at: NOW - 90 }])).toBe(90);
});

const EIGHT = new Date(2026, 10, 14, 8, 0).getTime() / 1000;

test("quotas have what is used and when they reset, and unknown ones are left out", () => {
  const quotas = { at: EIGHT, five_hour: null, seven_day: null, spend_limit: null };
  const five_hour = { used_percentage: 62, resets_at: EIGHT + 5_400 };
  expect(quotaText({ ...quotas, five_hour }, EIGHT)).toBe("5h 62.0% used, resets 09:30");
  expect(quotaText({ ...quotas, five_hour }, EIGHT + 5_400)).toBe("");
  const seven_day = { used_percentage: 41.5, resets_at: EIGHT + 86_400 };
  expect(quotaText({ ...quotas, five_hour, seven_day }, EIGHT)).toBe(
    "5h 62.0% used, resets 09:30; 7d 41.5% used, resets 15 Nov, 08:00",
  );
});

test("a cache is warm, expired, none or unknown", () => {
  const cache = {
    origin: "reported" as const,
    at: EIGHT,
    warm: true,
    caching_observed: true,
    ttl: "1h" as const,
    expires_at: EIGHT + 3_600,
    requests: null,
    misses: null,
    expected_rebuilds: null,
    hit_ratio: 0.914,
    cache_write_tokens: null,
    miss_recache_tokens: null,
    last_miss_at: null,
    last_miss_cause: null,
    miss_causes: null,
    recache_tokens_if_cold: 82_000,
  };
  expect(cacheText(cache, EIGHT)).toBe(
    "warm until 09:00, 82K tokens to write again if it expires, 91.4% of the input read from it",
  );
  const cold = { ...cache, hit_ratio: null };
  expect(cacheText(cold, EIGHT + 4_000)).toBe(
    "expired 09:00, 82K tokens to write again with the next call",
  );
  expect(cacheText({ ...cold, warm: false, recache_tokens_if_cold: null }, EIGHT)).toBe(
    "expired 09:00",
  );
  expect(cacheText({ ...cache, caching_observed: false }, EIGHT)).toContain("none");
  expect(cacheText({ ...cache, expires_at: null }, EIGHT)).toBe("unknown");
});

test("a cause that the client reported is marked, also one that has no name of ours", () => {
  expect(causeText({ cause: "model switch", reported: null })).toBe("model switch");
  expect(causeText({ cause: "model switch", reported: "model_changed" })).toBe(
    "model switch (reported by the client)",
  );
  expect(causeText({ cause: "unknown", reported: "moon_phase" })).toBe(
    "moon_phase (reported by the client)",
  );
});

test("an end has the time of its reset or of its expiry", () => {
  const at = Date.UTC(2026, 10, 18, 12, 0) / 1000;
  const end = {
    kind: "compaction" as const,
    text: "of limit 92.1%",
    used: 92.1,
    at: null,
    is_urgent: true,
  };
  expect(endText(end, at)).toBe("of limit 92.1%");
  expect(endText({ ...end, kind: "quota", text: "5h 94.0%", at: at + 60 }, at)).toMatch(
    /^5h 94\.0%, resets \d\d:01$/,
  );
  expect(endText({ ...end, kind: "cache", text: "then 90K again", at: at + 60 }, at)).toMatch(
    /^until \d\d:01, then 90K again$/,
  );
});

test("projects with the same folder are named by their paths", () => {
  const paths = ["/home/u/shop", "/srv/shop", "/srv/ledger"];
  expect(Object.values(projectNames(paths))).toEqual(["/home/u/shop", "/srv/shop", "ledger"]);
});
