/** Drawing on uPlot's canvas: reference lines, labels and marks. */

import type uPlot from "uplot";
import type { Line } from "./lines";
import { MARKS, type Mark } from "./marks";

export interface Theme {
  ink: string;
  soft: string;
  grid: string;
  panel: string;
  limit: string;
  lines: string[];
  font: string;
}

const MISS_WIDTH_PX = 3;
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

export function themeOf(box: HTMLElement): Theme {
  const style = getComputedStyle(box);
  const colour = (drawLabel: string) => style.getPropertyValue(drawLabel).trim();
  return {
    ink: colour("--ink"),
    soft: colour("--soft"),
    grid: colour("--line"),
    panel: colour("--panel"),
    limit: colour("--limit"),
    lines: [1, 2, 3, 4, 5, 6].map((at) => colour(`--line-${at}`)),
    font: `11px ${style.fontFamily}`,
  };
}

export function series(line: Line, theme: Theme): uPlot.Series {
  const dash = line.formula ? [2, 3] : (DASHES[line.colour % DASHES.length] ?? []);
  return {
    label: line.name,
    stroke: theme.lines[line.colour % theme.lines.length] ?? theme.ink,
    width: line.colour === 0 && !line.formula ? 2 : 1.4,
    dash,
    points: { size: 4 },
  };
}

export function drawHorizontalLine(
  plot: uPlot,
  theme: Theme,
  value: number,
  stroke: string,
  dash: number[],
  label: string,
  labelOffset = -5,
): void {
  const { ctx, bbox } = plot;
  const y = Math.round(plot.valToPos(value, "y", true));
  if (y < bbox.top || y > bbox.top + bbox.height) return;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.fillStyle = stroke;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash(dash.map((part) => part * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  name(ctx, theme, label, bbox.left + 6 * devicePixelRatio, y + labelOffset * devicePixelRatio);
  ctx.restore();
}

/** A label with an outline, readable over lines. */
function name(ctx: CanvasRenderingContext2D, theme: Theme, label: string, x: number, y: number) {
  ctx.font = scaledFont(theme);
  ctx.textAlign = "left";
  ctx.setLineDash([]);
  ctx.strokeStyle = theme.panel;
  ctx.lineWidth = 3 * devicePixelRatio;
  ctx.strokeText(label, x, y);
  ctx.fillText(label, x, y);
}

/** Symbols closer to one another than this are put in different lanes. */
export const SYMBOL_WIDTH_PX = 14;
export const MAX_LANES = 3;

/** Returns a function that gives each symbol, from left to right, the first lane with room. */
export function laneAssigner(width: number): (x: number) => number {
  const last: number[] = new Array(MAX_LANES).fill(Number.NEGATIVE_INFINITY);
  return (x) => {
    const free = last.findIndex((before) => x - before >= width);
    const lane = free < 0 ? last.indexOf(Math.min(...last)) : free;
    last[lane] = x;
    return lane;
  };
}

/** Draw a mark's symbol above the plot, with a thin line down through it. */
export function drawMark(plot: uPlot, theme: Theme, mark: Mark, x: number, lane: number): void {
  const { ctx, bbox } = plot;
  const foot = bbox.top - (9 + 13 * lane) * devicePixelRatio;
  const end = mark.kind === "compaction" || mark.kind === "clear";
  ctx.strokeStyle = end ? theme.ink : theme.soft;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash(end ? [] : [2 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(x, foot + 3 * devicePixelRatio);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.fillStyle = theme.ink;
  ctx.font = `${end ? "600 " : ""}${scaledFont(theme)}`;
  ctx.fillText(MARKS[mark.kind].symbol, x, foot);
}

/** Draw the tokens of a cache miss as a bar, in the unit of the y axis. */
export function drawMiss(plot: uPlot, theme: Theme, x: number, tokens: number): void {
  const { ctx, bbox } = plot;
  const top = Math.max(bbox.top, plot.valToPos(tokens, "y", true));
  const width = MISS_WIDTH_PX * devicePixelRatio;
  ctx.save();
  ctx.globalAlpha = 0.5;
  ctx.fillStyle = theme.limit;
  ctx.fillRect(x - width / 2, top, width, bbox.top + bbox.height - top);
  ctx.restore();
}

function scaledFont(theme: Theme): string {
  return theme.font.replace("11px", `${11 * devicePixelRatio}px`);
}
