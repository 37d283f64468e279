/** What each call of a thread sent, by category, as bands below its line in the timeline. */

import type uPlot from "uplot";
import type { ExplainedCall, ExplainedThread } from "../api-types";
import type { Plot } from "../timeline/plot";
import { colourOf } from "./slices";

export const BANDS_DRAWN = "category bands"; // the name of its performance measures

/** A call, and the part of the x axis that it fills. */
export interface Column {
  from: number;
  to: number;
  call: ExplainedCall;
}

/** The columns of a thread's calls: each reaches halfway to its neighbours. */
export function columnsOf(thread: ExplainedThread, plot: Plot): Column[] {
  const own = plot.placed.filter(({ call }) => call.thread === thread.thread);
  const places = new Map(own.map(({ call, x }) => [call.call, x]));
  const calls = (thread.series ?? []).flatMap((call) => {
    const x = places.get(call.call);
    return x === undefined ? [] : [{ call, x }];
  });
  const half = calls.length > 1 ? ((calls[1]?.x ?? 0) - (calls[0]?.x ?? 0)) / 2 : 0.5;
  return calls.map(({ call, x }, at) => {
    const [before, after] = [calls[at - 1]?.x, calls[at + 1]?.x];
    const from = before === undefined ? x - half : (before + x) / 2;
    return { from, to: after === undefined ? 2 * x - from : (x + after) / 2, call };
  });
}

/** At most `most` columns in their order: of neighbours the one that sent most, as wide as all. */
export function thinned(columns: Column[], most: number): Column[] {
  if (columns.length <= most) return columns;
  const merged: Column[] = [];
  columns.forEach((column, at) => {
    const bucket = Math.floor((at * most) / columns.length);
    const before = merged[bucket];
    const call = before && before.call.sent >= column.call.sent ? before.call : column.call;
    merged[bucket] = { from: before?.from ?? column.from, to: column.to, call };
  });
  return merged;
}

/** Draw the columns without gaps, each with its categories from the first one up. */
export function drawBands(plot: uPlot, columns: Column[]): void {
  const begun = performance.now();
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales.x ?? {};
  if (min == null || max == null || columns.length === 0) return;
  const shown = columns.filter(({ from, to }) => to >= min && from <= max);
  const drawn = thinned(shown, Math.floor(bbox.width / devicePixelRatio));
  const style = getComputedStyle(plot.root);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const bottoms = new Array<number>(drawn.length).fill(0);
  const layers = drawn[0]?.call.categories.length ?? 0;
  for (let layer = 0; layer <= layers; layer += 1) {
    const tops = drawn.map(({ call }, at) => {
      const size = layer < layers ? (call.categories[layer] ?? 0) : call.unexplained;
      return (bottoms[at] ?? 0) + size;
    });
    ctx.fillStyle = style.getPropertyValue(`--fill-${layer < layers ? colourOf(layer) : 0}`);
    drawLayer(plot, drawn, bottoms, tops);
    tops.forEach((value, at) => {
      bottoms[at] = value;
    });
  }
  ctx.restore();
  performance.measure(BANDS_DRAWN, { start: begun });
}

function drawLayer(plot: uPlot, columns: Column[], bottoms: number[], tops: number[]): void {
  if (tops.every((value, at) => value === bottoms[at])) return;
  const yOf = (value: number | undefined) => plot.valToPos(value ?? 0, "y", true);
  const edges = columns.map(({ from, to }) => [from, to].map((x) => plot.valToPos(x, "x", true)));
  plot.ctx.beginPath();
  edges.forEach(([left = 0, right = 0], at) => {
    plot.ctx.lineTo(left, yOf(tops[at]));
    plot.ctx.lineTo(right, yOf(tops[at]));
  });
  for (let at = edges.length - 1; at >= 0; at -= 1) {
    const [left = 0, right = 0] = edges[at] ?? [];
    plot.ctx.lineTo(right, yOf(bottoms[at]));
    plot.ctx.lineTo(left, yOf(bottoms[at]));
  }
  plot.ctx.fill();
}
