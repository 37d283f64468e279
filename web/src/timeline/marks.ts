/** What happened in a session beside its calls, as marks on the timeline. Pure. */

import type { CompactionRow, HandoffHead, SignalRow, ThreadMiss, Timeline } from "../api-types";
import { count, dollars, duration, levelText, modelName, tokens } from "../format";
import { causeText } from "../reading";
import type { Placed, Plot } from "./plot";

export type MarkKind =
  | "compaction"
  | "clear"
  | "model"
  | "level"
  | "message"
  | "handoff"
  | "miss"
  | "note";

export const MARKS: Record<MarkKind, { symbol: string; word: string }> = {
  compaction: { symbol: "C", word: "compaction" },
  clear: { symbol: "X", word: "clear" },
  model: { symbol: "M", word: "model switch" },
  level: { symbol: "L", word: "level" },
  message: { symbol: "@", word: "message delivered" },
  handoff: { symbol: "H", word: "handoff" },
  miss: { symbol: "$", word: "cache miss" },
  note: { symbol: "!", word: "note" },
};

export interface Mark {
  kind: MarkKind;
  x: number;
  at: number | null;
  thread: string;
  text: string;
  /** The tokens that a cache miss paid again: the height of its bar. */
  tokens?: number;
}

/** Every mark of a timeline, in order. */
export function marksOf(timeline: Timeline, plot: Plot): Mark[] {
  const marks = [
    ...timeline.compactions.map((row) => compactionMark(row, plot)),
    ...signalMarks(timeline, plot),
    ...messageMarks(timeline, plot),
    ...timeline.handoffs.flatMap((row) => handoffMarks(row, plot)),
    ...modelMarks(plot),
    ...missMarks(timeline, plot),
  ];
  return marks.filter((mark) => Number.isFinite(mark.x)).sort((a, b) => a.x - b.x);
}

/** The x position of a time; on the axis of calls, between the calls before and after it. */
export function positionOf(at: number, plot: Plot): number {
  if (plot.axis === "time") return at;
  return plot.placed.filter(({ time }) => time <= at).length + 0.5;
}

function compactionMark(row: CompactionRow, plot: Plot): Mark {
  const clear = row.trigger === "clear";
  const sizes = `${tokens(row.before)} to ${tokens(row.after)}`;
  return {
    kind: clear ? "clear" : "compaction",
    x: cycleEnd(row, plot) ?? (row.at === null ? Number.NaN : positionOf(row.at, plot)),
    at: row.at,
    thread: row.thread,
    text: clear ? "cleared" : `${row.trigger ?? "compaction"}, ${sizes}`,
  };
}

/** Between the last call of the cycle and the first of the next one. */
function cycleEnd(row: CompactionRow, plot: Plot): number | null {
  const own = plot.placed.filter(({ call }) => call.thread === row.thread);
  const next = own.find(({ call }) => call.cycle > row.cycle);
  const last = own.filter(({ call }) => call.cycle <= row.cycle).at(-1);
  if (!next || !last) return null;
  return (last.x + next.x) / 2;
}

function signalMarks(timeline: Timeline, plot: Plot): Mark[] {
  return timeline.signals.flatMap((row) => {
    const kind = MARK_OF_SIGNAL[row.kind];
    if (!kind || (kind === "compaction" && hasRow(row, timeline))) return [];
    const level = row.kind === "level" ? levelText(row.level) : row.kind;
    const text = row.sent === null ? level : `${level}, ${count(row.sent)} sent`;
    return [{ kind, x: positionOf(row.at, plot), at: row.at, thread: row.thread, text }];
  });
}

/** Whether a compaction has a row: those reported by a hook alone have none. */
function hasRow({ thread, cycle }: SignalRow, { compactions }: Timeline): boolean {
  return compactions.some((row) => row.thread === thread && row.cycle === cycle);
}

const MARK_OF_SIGNAL: Record<string, MarkKind> = {
  level: "level",
  compacted: "compaction",
  cleared: "clear",
  thrash: "note",
  "no data": "note",
  "no window": "note",
  disagree: "note",
};

function messageMarks(timeline: Timeline, plot: Plot): Mark[] {
  return timeline.messages
    .filter((row) => row.state === "delivered")
    .map((row) => {
      const at = row.handed_at ?? row.at;
      const text = `from ${row.sender}: ${row.text}`;
      return { kind: "message", x: positionOf(at, plot), at, thread: row.thread ?? "main", text };
    });
}

function handoffMarks(row: HandoffHead, plot: Plot): Mark[] {
  const what = row.draft ? "draft" : `by ${row.author}`;
  const mark = (at: number, text: string): Mark => {
    return { kind: "handoff", x: positionOf(at, plot), at, thread: "main", text };
  };
  const written = mark(row.at, `handoff ${what}`);
  return row.used_at === null
    ? [written]
    : [written, mark(row.used_at, `handoff ${what} injected`)];
}

function modelMarks(plot: Plot): Mark[] {
  const last = new Map<string, Placed>();
  const marks: Mark[] = [];
  for (const item of plot.placed) {
    const { call } = item;
    if (call.model === null) continue;
    const before = last.get(call.thread);
    const [from, to] = [before?.call.model ?? null, call.model].map(modelName);
    if (before && from !== to) {
      const text = `${from} to ${to}`;
      marks.push({ kind: "model", x: item.x, at: call.at, thread: call.thread, text });
    }
    last.set(call.thread, item);
  }
  return marks;
}

function missMarks(timeline: Timeline, plot: Plot): Mark[] {
  const places = new Map(plot.placed.map(({ call, x }) => [`${call.thread}\n${call.call}`, x]));
  return timeline.misses.map((miss) => ({
    kind: "miss",
    x: places.get(`${miss.thread}\n${miss.call}`) ?? Number.NaN,
    at: miss.at,
    thread: miss.thread,
    text: missText(miss),
    tokens: miss.tokens,
  }));
}

function missText(miss: ThreadMiss): string {
  const after = miss.idle_s === null ? "" : ` after ${duration(miss.idle_s)}`;
  const price = miss.cost === null ? "" : ` for ${dollars(miss.cost)}`;
  return `${tokens(miss.tokens)} paid again${price}${after}: ${causeText(miss)}`;
}

/** The marks that are closer to a point than to its neighbours. */
export function marksNear(marks: Mark[], x: number[], at: number): Mark[] {
  const here = x[at];
  if (here === undefined) return [];
  const from = (here + (x[at - 1] ?? Number.NEGATIVE_INFINITY)) / 2;
  const to = (here + (x[at + 1] ?? Number.POSITIVE_INFINITY)) / 2;
  return marks.filter((mark) => mark.x >= from && mark.x <= to);
}

/** The handoff that was injected between a compaction and the next one of its thread. */
export function injectedAfter(
  row: CompactionRow,
  all: CompactionRow[],
  handoffs: HandoffHead[],
): HandoffHead | null {
  const { at } = row;
  if (at === null || row.thread !== "main") return null;
  const next = all.find((other) => other.thread === row.thread && other.cycle === row.cycle + 1);
  const end = next?.at ?? Number.POSITIVE_INFINITY;
  const used = (head: HandoffHead) =>
    head.used_at !== null && head.used_at >= at && head.used_at < end;
  return handoffs.find(used) ?? null;
}
