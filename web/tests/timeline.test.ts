import { expect, test } from "vitest";
import type { CompactionRow, HandoffHead, SignalRow } from "../src/api-types";
import { lanes } from "../src/timeline/draw";
import { linesOf, saidAt } from "../src/timeline/lines";
import { injectedAfter, marksNear, marksOf } from "../src/timeline/marks";
import { callAt, formulaLine, plotOf, sentOf } from "../src/timeline/plot";
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

test("sent is what was not cached and what was, read and written; never the output", () => {
  expect(sentOf(call("x"))).toBe(111);
});

test("calls stand in the order in which they were made, each thread on its own line", () => {
  const plot = plotOf(CALLS, "calls");
  expect(plot.x).toEqual([1, 2, 3, 3.5, 4]);
  expect(plot.threads.map((line) => line.thread)).toEqual(["main", "agent"]);
  expect(plot.threads[0]?.values).toEqual([111, undefined, 112, null, 113]);
  expect(plot.threads[1]?.values).toEqual([undefined, 114, undefined, undefined, undefined]);
});

test("a line stays broken where another thread goes on meanwhile", () => {
  const late = call("a2", { at: NOW + 39, thread: "agent" });
  const plot = plotOf([...CALLS, late], "time");
  expect(plot.threads[0]?.values).toEqual([111, undefined, 112, null, null, 113]);
});

test("over time the places are times, and a call without one is not drawn", () => {
  const plot = plotOf([call("none", { at: null, thread: "late" }), ...CALLS], "time");
  expect(plot.x).toEqual([NOW, NOW + 10, NOW + 20, NOW + 30, NOW + 40]);
});

test("two calls of a thread in the same second are both there", () => {
  const plot = plotOf([call("one"), call("two")], "time");
  expect(plot.x).toEqual([NOW, NOW + 0.001]);
});

test("what is pointed at is a call, also where a line is broken", () => {
  const plot = plotOf(CALLS, "calls");
  expect(plot.x.map((_, at) => callAt(plot, at)?.call)).toEqual(["m1", "a1", "m2", "m2", "m3"]);
});

test("a formula has a value for each call of main, and unknown is a gap", () => {
  const plot = plotOf(CALLS, "calls");
  expect(formulaLine(plot, [7, null, 9])).toEqual([7, undefined, null, undefined, 9]);
  expect(
    linesOf(plot, ["effective", "last_input"], { effective: [1, 2, 3] }).map((line) => line.name),
  ).toEqual(["main", "agent", "effective"]);
});

test("a formula's figure is told where a call of main is, and unknown as such", () => {
  const plot = plotOf(CALLS, "calls");
  const lines = linesOf(plot, ["effective"], { effective: [7, null, 9] });
  expect(plot.x.map((_, at) => saidAt(lines, at)[0]?.[1])).toEqual([
    7,
    undefined,
    null,
    undefined,
    9,
  ]);
});

test("marks lie between the calls that they happened between, on both axes", () => {
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

test("a compaction whose time is unknown stands where its cycle ended", () => {
  const told = timeline({ calls: CALLS, compactions: [{ ...COMPACTION, at: null }] });
  expect(marksOf(told, plotOf(CALLS, "calls"))[0]?.x).toBe(3.5);
});

test("a compaction is marked once, a level and a delivered message too, a queued one never", () => {
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

test("a compaction that a hook alone tells of is marked where it happened", () => {
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

test("a place is told the marks that are nearer to it than to its neighbours", () => {
  const mark = (x: number) => ({ kind: "note" as const, x, at: null, thread: "main", text: "" });
  const marks = [1, 1.4, 1.9, 2.4, 9].map(mark);
  expect(marksNear(marks, [1, 2, 3], 1).map(({ x }) => x)).toEqual([1.9, 2.4]);
  expect(marksNear(marks, [1, 2, 3], 2).map(({ x }) => x)).toEqual([9]);
});

test("what was injected belongs to the compaction before it, and not to the next one", () => {
  const next = { ...COMPACTION, cycle: 1, at: NOW + 90 };
  const all = [COMPACTION, next];
  expect(injectedAfter(COMPACTION, all, [HANDOFF])?.id).toBe("h");
  expect(injectedAfter(next, all, [HANDOFF])).toBeNull();
  expect(injectedAfter(COMPACTION, all, [{ ...HANDOFF, used_at: null }])).toBeNull();
});

test("signs that would cover one another change lanes", () => {
  const lane = lanes(10);
  expect([0, 5, 9, 30, 31, 41].map(lane)).toEqual([0, 1, 2, 0, 1, 0]);
  expect([42, 43, 44].map(lane)).toEqual([1, 2, 0]);
});
