/** The stacked area of a thread's calls, drawn on a canvas. */

import type { ExplainedCall, ExplainedThread } from "../api-types";
import { tokens } from "../format";
import { colourOf } from "./slices";

export const AREA_DRAWN = "category area"; // the name of its performance measures

/** The numbers of the calls before which a cycle began. */
export function cycleStarts(thread: ExplainedThread): number[] {
  const starts: number[] = [];
  let calls = 0;
  for (const cycle of thread.cycles) {
    if (calls > 0) starts.push(calls);
    calls += cycle.calls;
  }
  return starts;
}

/** At most `most` calls in their order: of neighbours the one that sent most. */
export function thinned(series: ExplainedCall[], most: number): ExplainedCall[] {
  if (series.length <= most) return series;
  const kept: ExplainedCall[] = [];
  series.forEach((call, at) => {
    const bucket = Math.floor((at * most) / series.length);
    const before = kept[bucket];
    if (!before || call.sent > before.sent) kept[bucket] = call;
  });
  return kept;
}

/** A step of 1, 2 or 5 times a power of ten, so that an axis has about four. */
export function axisStep(top: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, top / 4)));
  return [1, 2, 5, 10].map((by) => by * power).find((step) => step * 5 >= top) ?? 10 * power;
}

/** Draw the calls as columns without gaps, each with its categories from the first one up. */
export function drawArea(canvas: HTMLCanvasElement, thread: ExplainedThread): void {
  const begun = performance.now();
  const { width, height } = canvas.getBoundingClientRect();
  const context = canvas.getContext("2d");
  const series = thread.series ?? [];
  if (!context || width === 0 || series.length === 0) return;
  canvas.width = Math.round(width * devicePixelRatio);
  canvas.height = Math.round(height * devicePixelRatio);
  context.scale(devicePixelRatio, devicePixelRatio);
  const style = getComputedStyle(canvas);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const top = Math.max(1, ...thinned(series, 1_000).map((call) => call.sent));
  const yOf = (value: number) => height - (height * value) / (top * 1.04);
  drawColumns(context, thinned(series, Math.floor(width)), width, yOf, colour);
  context.font = `11px ${style.fontFamily}`;
  drawGrid(context, width, top, yOf, colour);
  for (const start of cycleStarts(thread)) {
    drawCycleStart(context, (width * start) / series.length, height, colour);
  }
  performance.measure(AREA_DRAWN, { start: begun });
}

type Colour = (name: string) => string;

function drawColumns(
  context: CanvasRenderingContext2D,
  calls: ExplainedCall[],
  width: number,
  yOf: (value: number) => number,
  colour: Colour,
): void {
  const bottoms = new Array<number>(calls.length).fill(0);
  const layers = calls[0]?.categories.length ?? 0;
  for (let layer = 0; layer <= layers; layer += 1) {
    const tops = calls.map((call, at) => {
      return (
        (bottoms[at] ?? 0) + (layer < layers ? (call.categories[layer] ?? 0) : call.unexplained)
      );
    });
    if (tops.every((value, at) => value === bottoms[at])) continue;
    context.fillStyle = colour(`--fill-${layer < layers ? colourOf(layer) : 0}`);
    context.beginPath();
    const edge = (at: number) => (width * at) / calls.length;
    tops.forEach((value, at) => {
      context.lineTo(edge(at), yOf(value));
      context.lineTo(edge(at + 1), yOf(value));
    });
    for (let at = calls.length - 1; at >= 0; at -= 1) {
      context.lineTo(edge(at + 1), yOf(bottoms[at] ?? 0));
      context.lineTo(edge(at), yOf(bottoms[at] ?? 0));
    }
    context.fill();
    tops.forEach((value, at) => {
      bottoms[at] = value;
    });
  }
}

function drawGrid(
  context: CanvasRenderingContext2D,
  width: number,
  top: number,
  yOf: (value: number) => number,
  colour: Colour,
): void {
  const step = axisStep(top);
  for (let value = step; value <= top; value += step) {
    const y = Math.round(yOf(value)) + 0.5;
    context.globalAlpha = 0.25;
    context.fillStyle = colour("--ink");
    context.fillRect(0, y, width, 1);
    context.globalAlpha = 1;
    drawLabel(context, tokens(value), 4, y - 4, colour);
  }
}

function drawCycleStart(
  context: CanvasRenderingContext2D,
  x: number,
  height: number,
  colour: Colour,
): void {
  context.fillStyle = colour("--ink");
  for (let y = 0; y < height; y += 7) context.fillRect(Math.round(x) - 0.5, y, 1, 4);
}

/** A label with an outline, readable over any colour. */
function drawLabel(
  context: CanvasRenderingContext2D,
  label: string,
  x: number,
  y: number,
  colour: Colour,
): void {
  context.strokeStyle = colour("--panel");
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeText(label, x, y);
  context.fillStyle = colour("--ink");
  context.fillText(label, x, y);
}
