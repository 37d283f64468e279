/** A session's calls as lines over calls or time. Pure. */

import type { CallRow, DayUsage } from "../api-types";

export type Axis = "calls" | "time";

/** The tokens sent: the only sum that the page computes. */
export function sentOf(usage: CallRow | DayUsage): number {
  return usage.input + usage.cache_read + usage.cache_write;
}

/** A call with its position on the x axis. */
export interface Placed {
  call: CallRow;
  x: number;
  /** Its time, or that of the previous call of its thread. */
  time: number;
}

/** Values over shared x positions: null is a gap, undefined is no value of this line. */
export type Values = (number | null | undefined)[];

export interface Plot {
  axis: Axis;
  x: number[];
  /** The call at each position; null at a break of a line. */
  at: (CallRow | null)[];
  threads: { thread: string; values: Values }[];
  placed: Placed[];
}

/** The lines of all threads, main first; a line breaks when a cycle ends. */
export function plotOf(calls: CallRow[], axis: Axis): Plot {
  const placed = placeCalls(calls, axis);
  const breaks = breaksOf(placed);
  const at = new Map<number, CallRow | null>();
  for (const gap of breaks) at.set(gap.x, null);
  for (const { call, x } of placed) if (at.get(x)?.thread !== "main") at.set(x, call);
  const x = [...at.keys()].sort((a, b) => a - b);
  const index = new Map(x.map((value, place) => [value, place]));
  const threads = threadsOf(placed).map((thread) => ({
    thread,
    values: valuesOf(placed, breaks, thread, index),
  }));
  return { axis, x, at: x.map((value) => at.get(value) ?? null), threads, placed };
}

/** The calls of all threads in the order of their times. */
export function placeCalls(calls: CallRow[], axis: Axis): Placed[] {
  const last = new Map<string, number>();
  const timed = calls.map((call) => {
    const time = call.at ?? last.get(call.thread) ?? 0;
    last.set(call.thread, time);
    return { call, x: 0, time };
  });
  timed.sort((a, b) => a.time - b.time);
  return axis === "calls"
    ? timed.map((item, place) => ({ ...item, x: place + 1 }))
    : separateEqualTimes(timed.filter((item) => item.time > 0));
}

/** Separate calls of the same thread at the same time by a millisecond. */
function separateEqualTimes(timed: Placed[]): Placed[] {
  const last = new Map<string, number>();
  return timed.map((item) => {
    const before = last.get(item.call.thread);
    const x = before !== undefined && item.time <= before ? before + 0.001 : item.time;
    last.set(item.call.thread, x);
    return { ...item, x };
  });
}

function threadsOf(placed: Placed[]): string[] {
  const names = new Set(placed.map(({ call }) => call.thread));
  const others = [...names].filter((name) => name !== "main");
  return names.has("main") ? ["main", ...others] : others;
}

/** Between two calls of a thread in different cycles: its occupancy there is unknown. */
interface Break {
  thread: string;
  from: number;
  x: number;
  to: number;
}

function breaksOf(placed: Placed[]): Break[] {
  const last = new Map<string, Placed>();
  const breaks: Break[] = [];
  for (const item of placed) {
    const before = last.get(item.call.thread);
    if (before && before.call.cycle !== item.call.cycle) {
      const [from, to] = [before.x, item.x];
      breaks.push({ thread: item.call.thread, from, x: (from + to) / 2, to });
    }
    last.set(item.call.thread, item);
  }
  return breaks;
}

function valuesOf(
  placed: Placed[],
  breaks: Break[],
  thread: string,
  index: Map<number, number>,
): Values {
  const values: Values = new Array(index.size).fill(undefined);
  for (const gap of breaks.filter((one) => one.thread === thread)) {
    const to = index.get(gap.to) ?? 0;
    for (let place = (index.get(gap.from) ?? to) + 1; place < to; place += 1) values[place] = null;
  }
  for (const { call, x } of placed) {
    const place = index.get(x);
    if (call.thread === thread && place !== undefined) values[place] = sentOf(call);
  }
  return values;
}

/** A formula's values, one for each call of the main thread, over the plot's positions. */
export function formulaLine(plot: Plot, values: (number | null)[]): Values {
  const line: Values = new Array(plot.x.length).fill(undefined);
  const index = new Map(plot.x.map((value, place) => [value, place]));
  const main = plot.placed.filter(({ call }) => call.thread === "main");
  main.forEach(({ x }, which) => {
    const place = index.get(x);
    if (place !== undefined) line[place] = values[which] ?? null;
  });
  return line;
}

/** The index of the nearest call: this one, or a neighbour at a break of a line. */
export function nearestCallIndex(plot: Plot, place: number): number {
  return [place, place - 1, place + 1].find((at) => plot.at[at]) ?? place;
}

/** The nearest call. */
export function callAt(plot: Plot, place: number): CallRow | null {
  return plot.at[nearestCallIndex(plot, place)] ?? null;
}

/** The x positions of the first and the last call of the main thread's current cycle. */
export function currentCycle(plot: Plot): [number, number] | null {
  const main = plot.placed.filter(({ call }) => call.thread === "main");
  const last = main.at(-1);
  const first = main.find(({ call }) => call.cycle === last?.call.cycle);
  return first && last ? [first.x, last.x] : null;
}
