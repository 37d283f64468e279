/** The timeline's chart: uPlot with our lines, reference lines and marks. */

import uPlot from "uplot";
import { type Column, drawBands } from "../explanation/bands";
import { clock, shortPercent, tokens } from "../format";
import {
  drawHorizontalLine,
  drawMark,
  drawMiss,
  laneAssigner,
  MAX_LANES,
  SYMBOL_WIDTH_PX,
  series,
  type Theme,
  themeOf,
} from "./draw";
import type { Line } from "./lines";
import type { Mark } from "./marks";
import type { Plot } from "./plot";

export interface ChartData {
  plot: Plot;
  lines: Line[];
  marks: Mark[];
  /** The categories of a thread's calls; none unless they are switched on. */
  bands: Column[];
  window: number | null;
  limit: number | null;
  levels: number[];
  /** Whether the y axis reaches up to the window, or only to the largest value. */
  whole: boolean;
}

const HEIGHT_PX = 300;
/** Space above the plot, and with symbols of marks. */
const TOP_PADDING_PX = 12;
const MARKS_PADDING_PX = TOP_PADDING_PX + 13 * MAX_LANES;

/** The top of the y axis. */
export function maxValue(drawing: ChartData): number {
  let top = drawing.whole ? (drawing.window ?? 0) : 0;
  for (const line of drawing.lines) {
    for (const value of line.values) if (typeof value === "number" && value > top) top = value;
  }
  return top > 0 ? top * 1.04 : 1;
}

export class Chart {
  private uplot: uPlot | null = null;
  private layoutKey = "";
  private drawing: ChartData | null = null;
  private readonly size: ResizeObserver;

  constructor(
    private readonly box: HTMLElement,
    private readonly hover: (place: number | null) => void,
    private readonly zoomed: (zoomed: boolean) => void,
  ) {
    this.size = new ResizeObserver(() => this.uplot?.setSize(this.plotSize()));
    this.size.observe(box);
  }

  /** Show new data; the zoom stays if only values changed. */
  show(drawing: ChartData): void {
    this.drawing = drawing;
    const data = [drawing.plot.x, ...drawing.lines.map((line) => line.values)] as uPlot.AlignedData;
    const kind = [drawing.plot.axis, drawing.whole, ...drawing.lines.map((line) => line.name)].join(
      "\n",
    );
    if (this.uplot && kind === this.layoutKey) {
      this.uplot.setData(data, !this.isZoomed());
      this.uplot.redraw();
      return;
    }
    this.layoutKey = kind;
    this.uplot?.destroy();
    this.uplot = new uPlot(this.options(drawing), data, this.box);
    this.zoomed(false);
  }

  /** Redraw with the current colours, after a change of the colour scheme. */
  restyle(): void {
    this.layoutKey = "";
    if (this.drawing) this.show(this.drawing);
  }

  /** Zoom around the middle by a factor; less than 1 zooms in. */
  zoom(by: number): void {
    const scale = this.uplot?.scales.x;
    if (!this.uplot || scale?.min == null || scale.max == null) return;
    const middle = (scale.min + scale.max) / 2;
    const half = ((scale.max - scale.min) / 2) * by;
    this.uplot.setScale("x", this.clampRange(middle - half, middle + half));
  }

  /** Show the part of the x axis between two points, with some room. */
  zoomTo(from: number, to: number): void {
    const room = Math.max(0.5, (to - from) * 0.02);
    this.uplot?.setScale("x", this.clampRange(from - room, to + room));
  }

  reset(): void {
    const [min, max] = this.fullRange();
    this.uplot?.setScale("x", { min, max });
  }

  /** Move the cursor to a point. */
  moveCursor(at: number): void {
    const x = this.drawing?.plot.x[at];
    if (!this.uplot || x === undefined) return;
    this.uplot.setCursor({ left: this.uplot.valToPos(x, "x"), top: 0 });
  }

  destroy(): void {
    this.size.disconnect();
    this.uplot?.destroy();
    this.uplot = null;
  }

  private plotSize(): { width: number; height: number } {
    const width = Math.max(200, this.box.clientWidth);
    return { width, height: HEIGHT_PX };
  }

  private topPadding(): number {
    const hasSymbols = this.drawing?.marks.some(({ tokens }) => tokens === undefined);
    return hasSymbols ? MARKS_PADDING_PX : TOP_PADDING_PX;
  }

  private fullRange(): [number, number] {
    const x = this.drawing?.plot.x ?? [];
    const [first, last] = [x[0] ?? 0, x.at(-1) ?? 1];
    const room = last > first ? (last - first) * 0.01 : 1;
    return [first - room, last + room];
  }

  private clampRange(min: number, max: number): { min: number; max: number } {
    const [first, last] = this.fullRange();
    return { min: Math.max(min, first), max: Math.min(max, last) };
  }

  private isZoomed(): boolean {
    const scale = this.uplot?.scales.x;
    const x = this.uplot?.data[0] ?? [];
    return (
      scale?.min != null &&
      scale.max != null &&
      (scale.min > (x[0] ?? 0) || scale.max < (x.at(-1) ?? 0))
    );
  }

  private options(drawing: ChartData): uPlot.Options {
    const theme = themeOf(this.box);
    const time = drawing.plot.axis === "time";
    const axis = {
      stroke: theme.soft,
      font: theme.font,
      grid: { stroke: theme.grid, width: 1 },
      ticks: { stroke: theme.grid, width: 1 },
    };
    return {
      ...this.plotSize(),
      padding: [() => this.topPadding(), 12, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: true }, points: { size: 7 }, y: false },
      scales: {
        x: {
          time,
          range: (_, min, max) =>
            min === drawing.plot.x[0] && max === drawing.plot.x.at(-1)
              ? this.fullRange()
              : [min, max],
        },
        y: { range: () => [0, this.drawing ? maxValue(this.drawing) : 1] },
      },
      axes: [
        time
          ? { ...axis, values: (_, ticks, __, ___, step) => ticks.map((at) => clock(at, step)) }
          : { ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] },
        { ...axis, size: 54, values: (_, ticks) => ticks.map((tick) => tokens(tick)) },
      ],
      series: [{}, ...drawing.lines.map((line) => series(line, theme))],
      hooks: {
        drawClear: [
          (plot) => drawBands(plot, this.drawing?.bands ?? []),
          (plot) => this.drawReferenceLines(plot, theme),
        ],
        draw: [(plot) => this.drawMarks(plot, theme)],
        setCursor: [(plot) => this.hover(plot.cursor.idx ?? null)],
        setScale: [(_, key) => key === "x" && this.zoomed(this.isZoomed())],
      },
    };
  }

  /** Horizontal lines for the window, the limit and the levels of the main thread. */
  private drawReferenceLines(plot: uPlot, theme: Theme): void {
    const drawing = this.drawing;
    if (!drawing) return;
    const { window, limit, levels } = drawing;
    for (const level of window === null ? [] : levels) {
      drawHorizontalLine(
        plot,
        theme,
        ((window ?? 0) * level) / 100,
        theme.soft,
        [1, 4],
        `level ${shortPercent(level)}`,
      );
    }
    // Its label is below the line: a limit may be so near the window that the labels would overlap.
    if (limit !== null && limit !== window)
      drawHorizontalLine(plot, theme, limit, theme.limit, [], `limit ${tokens(limit)}`, 13);
    if (window !== null)
      drawHorizontalLine(plot, theme, window, theme.ink, [], `window ${tokens(window)}`);
  }

  private drawMarks(plot: uPlot, theme: Theme): void {
    const { ctx, bbox } = plot;
    const lane = laneAssigner(SYMBOL_WIDTH_PX * devicePixelRatio);
    ctx.save();
    ctx.textAlign = "center";
    for (const mark of this.drawing?.marks ?? []) {
      const x = Math.round(plot.valToPos(mark.x, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      if (mark.tokens === undefined) drawMark(plot, theme, mark, x, lane(x));
      else drawMiss(plot, theme, x, mark.tokens);
    }
    ctx.restore();
  }
}
