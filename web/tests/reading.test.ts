import { expect, test } from "vitest";
import { barWords, isLive, levelOf, overshoots, stateOf, stateWords } from "../src/reading";
import { full, NOW, threadRow, view } from "./views";

test.each([
  [0, "low"],
  [49.9, "low"],
  [50, "medium"],
  [79.9, "medium"],
  [80, "high"],
  [99.9, "high"],
  [100, "limit"],
  [130, "limit"],
] as const)("without a known limit %d per cent is %s", (percent, level) => {
  expect(levelOf(full(percent))).toBe(level);
});

test("reaching the limit is what turns it red, however full the window is", () => {
  expect(levelOf(full(42, { percent_of_limit: 100 }))).toBe("limit");
  expect(levelOf(full(84, { percent_of_limit: 99.9 }))).toBe("high");
});

test("unknown has no level and is not said to be empty", () => {
  const unknown = threadRow({ percent: null, percent_raw: null, sent: null });
  expect(levelOf(unknown)).toBe("unknown");
  expect(levelOf(undefined)).toBe("unknown");
  expect(barWords(unknown, 80)).toBe("Occupancy unknown");
});

test("an overshoot is told beside the bounded percentage", () => {
  expect(overshoots(full(100))).toBe(false);
  expect(overshoots(full(130))).toBe(true);
  expect(barWords(full(130), null)).toContain("100.0 % of the window");
  expect(barWords(full(130), null)).toContain("overshoot: 130.0 %");
});

test("a session is stale after an hour in which nothing of it was heard", () => {
  const old = view({ seen_at: NOW - 7_200 }, [threadRow({ at: NOW - 7_200 })]);
  expect(stateOf(old, NOW)).toBe("stale");
  expect(stateWords(old, NOW)).toBe("stale, 2 h");
  const subagent = threadRow({ thread: "agent-1", at: NOW - 10 });
  expect(stateOf({ ...old, threads: [...old.threads, subagent] }, NOW)).toBe("measured");
});

test("unknown says whether it waits for the first reply or for the one after a compaction", () => {
  const before = view({}, [threadRow({ state: "unknown", cycle: 0 })]);
  const after = view({}, [threadRow({ state: "unknown", cycle: 1 })]);
  expect(stateWords(before, NOW)).toBe("unknown before the first reply");
  expect(stateWords(after, NOW)).toBe("unknown until the next reply");
});

test("what has ended or was not heard for a day is not live", () => {
  expect(isLive(view(), NOW)).toBe(true);
  expect(isLive(view({ ended_at: NOW }), NOW)).toBe(false);
  expect(isLive(view(), NOW + 90_000)).toBe(false);
  expect(stateOf(view({ ended_at: NOW }), NOW)).toBe("ended");
});
