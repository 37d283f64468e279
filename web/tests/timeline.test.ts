import { expect, test } from "vitest";
import type { CompactionRow, HandoffHead, SignalRow } from "../src/api-types";
import { laneAssigner } from "../src/timeline/draw";
import { formulaValuesAt, linesOf } from "../src/timeline/lines";
import { injectedAfter, marksNear, marksOf } from "../src/timeline/marks";
import { callAt, currentCycle, formulaLine, plotOf, sentOf } from "../src/timeline/plot";
import { call, NOW, timeline } from "./views";

const CALLS = [
  call("m1", { at: NOW }),
  call("m2", { at: NOW + 20, input: 2 }),
  call("m3", { at: NOW + 40, cycle: 1, input: 3, model: "other" }),
  call("a1", { at: NOW + 10, thread: "agent", input: 4 }),
];

const COMPACTION: CompactionRow = {
  session: "s",
  thread: "main",
  cycle: 0,
  at: NOW + 30,
  trigger: "auto",
  before: 167_000,
  after: 22_000,
  model: "m",
  version: null,
  inferred: false,
  overflow: false,
};

const HANDOFF: HandoffHead = {
  id: "h",
  at: NOW + 15,
  path: "/h.md",
  author: "agent",
  cycle: 0,
  calls: 2,
  draft: false,
  used_at: NOW + 35,
};

test("sent is input, cache read and cache write, without the output", () => {
  expect(sentOf(call("x"))).toBe(111);
});

test("calls are in the order of their times, each thread on its own line", () => {
  const plot = plotOf(CALLS, "calls");
  expect(plot.x).toEqual([1, 2, 3, 3.5, 4]);
  expect(plot.threads.map((line) => line.thread)).toEqual(["main", "agent"]);
  expect(plot.threads[0]?.values).toEqual([111, undefined, 112, null, 113]);
  expect(plot.threads[1]?.values).toEqual([undefined, 114, undefined, undefined, undefined]);
});

test("a line stays broken while another thread continues", () => {
  const late = call("a2", { at: NOW + 39, thread: "agent" });
  const plot = plotOf([...CALLS, late], "time");
  expect(plot.threads[0]?.values).toEqual([111, undefined, 112, null, null, 113]);
});

test("on the time axis a call without a time is not drawn", () => {
  const plot = plotOf([call("none", { at: null, thread: "late" }), ...CALLS], "time");
  expect(plot.x).toEqual([NOW, NOW + 10, NOW + 20, NOW + 30, NOW + 40]);
});

test("two calls of a thread in the same second are both drawn", () => {
  const plot = plotOf([call("one"), call("two")], "time");
  expect(plot.x).toEqual([NOW, NOW + 0.001]);
});

test("the selected point is a call, also at a break of a line", () => {
  const plot = plotOf(CALLS, "calls");
  expect(plot.x.map((_, at) => callAt(plot, at)?.call)).toEqual(["m1", "a1", "m2", "m2", "m3"]);
});

test("a formula has a value for each call of main; unknown is a gap", () => {
  const plot = plotOf(CALLS, "calls");
  expect(formulaLine(plot, [7, null, 9])).toEqual([7, undefined, null, undefined, 9]);
  expect(
    linesOf(plot, ["effective", "last_input"], { effective: [1, 2, 3] }).map((line) => line.name),
  ).toEqual(["main", "agent", "effective"]);
});

test("a formula's value is shown at calls of main, unknown included", () => {
  const plot = plotOf(CALLS, "calls");
  const lines = linesOf(plot, ["effective"], { effective: [7, null, 9] });
  expect(plot.x.map((_, at) => formulaValuesAt(lines, at)[0]?.[1])).toEqual([
    7,
    undefined,
    null,
    undefined,
    9,
  ]);
});

test("marks lie between the calls before and after them, on both axes", () => {
  const told = timeline({ calls: CALLS, compactions: [COMPACTION], handoffs: [HANDOFF] });
  const byCalls = marksOf(told, plotOf(CALLS, "calls"));
  expect(byCalls.map((mark) => [mark.kind, mark.x])).toEqual([
    ["handoff", 2.5],
    ["compaction", 3.5],
    ["handoff", 3.5],
    ["model", 4],
  ]);
  const byTime = marksOf(told, plotOf(CALLS, "time"));
  expect(byTime.map((mark) => mark.x)).toEqual([NOW + 15, NOW + 30, NOW + 35, NOW + 40]);
});

test("a compaction without a time is placed at the end of its cycle", () => {
  const told = timeline({ calls: CALLS, compactions: [{ ...COMPACTION, at: null }] });
  expect(marksOf(told, plotOf(CALLS, "calls"))[0]?.x).toBe(3.5);
});

test("a compaction, a level and a delivered message are marked once, a queued message never", () => {
  const signal = {
    session: "s",
    thread: "main",
    cycle: 0,
    at: NOW + 5,
    level: 50,
    text: "",
    sent: 9,
    percent: 50,
    arm: 0,
  };
  const message = {
    id: "1",
    session: "s",
    text: "hi",
    at: NOW,
    order: 1,
    urgency: "urgent" as const,
    sender: "user",
    thread: null,
    cycle: null,
    level: null,
    expires: null,
    handed_at: NOW + 12,
    blocks_stop: false,
  };
  const told = timeline({
    calls: CALLS,
    compactions: [COMPACTION],
    signals: [
      { ...signal, kind: "level" },
      { ...signal, kind: "compacted" },
      { ...signal, kind: "new kind" as SignalRow["kind"] },
    ],
    messages: [
      { ...message, state: "delivered" },
      { ...message, state: "queued" },
    ],
  });
  const kinds = marksOf(told, plotOf(CALLS, "calls")).map((mark) => mark.kind);
  expect(kinds).toEqual(["level", "message", "compaction", "model"]);
});

test("a compaction reported only by a hook is marked at its time", () => {
  const heard = {
    session: "s",
    thread: "main",
    cycle: 0,
    kind: "compacted",
    at: NOW + 30,
  } as const;
  const signals = [{ ...heard, level: 0, text: "", sent: null, percent: null, arm: 0 }];
  const marks = marksOf(timeline({ calls: CALLS, signals }), plotOf(CALLS, "calls"));
  expect(marks.map((mark) => [mark.kind, mark.x])).toEqual([
    ["compaction", 3.5],
    ["model", 4],
  ]);
});

test("a cache miss is marked at its call, with its cost and cause", () => {
  const miss = {
    call: "m2",
    thread: "main",
    number: 2,
    at: NOW + 20,
    tokens: 61_400,
    cost: 0.58,
    idle_s: 4_020,
    cause: "idle longer than the cache lives" as const,
    reported: "ttl_expired_1h",
  };
  const gone = { ...miss, call: "other" };
  const plain = {
    ...miss,
    call: "a1",
    thread: "agent",
    cost: null,
    idle_s: null,
    reported: null,
  };
  const told = timeline({
    calls: CALLS.slice(0, 2).concat(CALLS.slice(3)),
    misses: [miss, gone, plain],
  });
  const plot = plotOf(told.calls, "calls");
  expect(marksOf(told, plot).map(({ kind, x, text }) => [kind, x, text])).toEqual([
    ["miss", 2, "61K paid again: idle longer than the cache lives"],
    [
      "miss",
      3,
      "61K paid again for $0.58 after 1 h: idle longer than the cache lives (reported by the client)",
    ],
  ]);
});

test("a point has the marks that are closer to it than to its neighbours", () => {
  const mark = (x: number) => ({ kind: "note" as const, x, at: null, thread: "main", text: "" });
  const marks = [1, 1.4, 1.9, 2.4, 9].map(mark);
  expect(marksNear(marks, [1, 2, 3], 1).map(({ x }) => x)).toEqual([1.9, 2.4]);
  expect(marksNear(marks, [1, 2, 3], 2).map(({ x }) => x)).toEqual([9]);
});

test("an injected handoff belongs to the compaction before it", () => {
  const next = { ...COMPACTION, cycle: 1, at: NOW + 90 };
  const all = [COMPACTION, next];
  expect(injectedAfter(COMPACTION, all, [HANDOFF])?.id).toBe("h");
  expect(injectedAfter(next, all, [HANDOFF])).toBeNull();
  expect(injectedAfter(COMPACTION, all, [{ ...HANDOFF, used_at: null }])).toBeNull();
});

test("symbols that would overlap are put in different lanes", () => {
  const lane = laneAssigner(10);
  expect([0, 5, 9, 30, 31, 41].map(lane)).toEqual([0, 1, 2, 0, 1, 0]);
  expect([42, 43, 44].map(lane)).toEqual([1, 2, 0]);
});

test("the current cycle is that of the main thread's last call", () => {
  expect(currentCycle(plotOf(CALLS, "calls"))).toEqual([4, 4]);
  expect(currentCycle(plotOf(CALLS.slice(0, 2), "calls"))).toEqual([1, 2]);
  expect(currentCycle(plotOf([], "calls"))).toBe(null);
});
