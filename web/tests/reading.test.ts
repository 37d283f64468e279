import { expect, test } from "vitest";
import {
  barText,
  isLive,
  isOverWindow,
  levelOf,
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

test("a session is stale after an hour without events", () => {
  const old = view({ seen_at: NOW - 7_200 }, [threadRow({ at: NOW - 7_200 })]);
  expect(stateOf(old, NOW)).toBe("stale");
  expect(stateText(old, NOW)).toBe("stale, 2 h");
  const subagent = threadRow({ thread: "agent-1", at: NOW - 10 });
  expect(stateOf({ ...old, threads: [...old.threads, subagent] }, NOW)).toBe("measured");
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
