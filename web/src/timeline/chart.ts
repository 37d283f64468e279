/** The timeline drawn: uPlot with our lines, scales and marks. */

import uPlot from "uplot";
import { clock, place, tokens } from "../format";
import { across, LANES, lanes, SIGN_WIDTH, series, sign, type Theme, themeOf } from "./draw";
import type { Line } from "./lines";
import type { Mark } from "./marks";
import type { Plot } from "./plot";

/** Everything that is drawn. */
export interface Drawing {
  plot: Plot;
  lines: Line[];
  marks: Mark[];
  window: number | null;
  limit: number | null;
  levels: number[];
  /** Up to the window, or only as far as the data goes. */
  whole: boolean;
}

const HEIGHT = 320;
const TALLER = 440;
const WIDE = 1_200;
/** Room above the plot for the lanes of signs. */
const TOP = 12 + 13 * LANES;

/** The tallest value: the window where the whole is shown, and never less than any line. */
export function topOf(drawing: Drawing): number {
  let top = drawing.whole ? (drawing.window ?? 0) : 0;
  for (const line of drawing.lines) {
    for (const value of line.values) if (typeof value === "number" && value > top) top = value;
  }
  return top > 0 ? top * 1.04 : 1;
}

export class Chart {
  private made: uPlot | null = null;
  private kind = "";
  private drawing: Drawing | null = null;
  private readonly size: ResizeObserver;

  constructor(
    private readonly box: HTMLElement,
    private readonly hover: (place: number | null) => void,
    private readonly zoomed: (zoomed: boolean) => void,
  ) {
    this.size = new ResizeObserver(() => this.made?.setSize(this.room()));
    this.size.observe(box);
  }

  /** Draw anew; where only the values changed the zoom stays. */
  show(drawing: Drawing): void {
    this.drawing = drawing;
    const data = [drawing.plot.x, ...drawing.lines.map((line) => line.values)] as uPlot.AlignedData;
    const kind = [drawing.plot.axis, drawing.whole, ...drawing.lines.map((line) => line.name)].join(
      "\n",
    );
    if (this.made && kind === this.kind) {
      this.made.setData(data, !this.isZoomed());
      this.made.redraw();
      return;
    }
    this.kind = kind;
    this.made?.destroy();
    this.made = new uPlot(this.options(drawing), data, this.box);
    this.zoomed(false);
  }

  /** Make it anew, as after a change of the colour scheme. */
  restyle(): void {
    this.kind = "";
    if (this.drawing) this.show(this.drawing);
  }

  /** Zoom to a part of what is seen, about its middle: less than 1 is nearer. */
  zoom(by: number): void {
    const scale = this.made?.scales.x;
    if (!this.made || scale?.min == null || scale.max == null) return;
    const middle = (scale.min + scale.max) / 2;
    const half = ((scale.max - scale.min) / 2) * by;
    this.made.setScale("x", this.within(middle - half, middle + half));
  }

  reset(): void {
    const [min, max] = this.whole();
    this.made?.setScale("x", { min, max });
  }

  /** Put the cursor on a place, as the arrow keys do. */
  point(at: number): void {
    const x = this.drawing?.plot.x[at];
    if (!this.made || x === undefined) return;
    this.made.setCursor({ left: this.made.valToPos(x, "x"), top: 0 });
  }

  destroy(): void {
    this.size.disconnect();
    this.made?.destroy();
    this.made = null;
  }

  private room(): { width: number; height: number } {
    const width = Math.max(200, this.box.clientWidth);
    return { width, height: width < WIDE ? HEIGHT : TALLER };
  }

  private whole(): [number, number] {
    const x = this.drawing?.plot.x ?? [];
    const [first, last] = [x[0] ?? 0, x.at(-1) ?? 1];
    const room = last > first ? (last - first) * 0.01 : 1;
    return [first - room, last + room];
  }

  private within(min: number, max: number): { min: number; max: number } {
    const [first, last] = this.whole();
    return { min: Math.max(min, first), max: Math.min(max, last) };
  }

  private isZoomed(): boolean {
    const scale = this.made?.scales.x;
    const x = this.made?.data[0] ?? [];
    return (
      scale?.min != null &&
      scale.max != null &&
      (scale.min > (x[0] ?? 0) || scale.max < (x.at(-1) ?? 0))
    );
  }

  private options(drawing: Drawing): uPlot.Options {
    const theme = themeOf(this.box);
    const time = drawing.plot.axis === "time";
    const axis = {
      stroke: theme.soft,
      font: theme.font,
      grid: { stroke: theme.grid, width: 1 },
      ticks: { stroke: theme.grid, width: 1 },
    };
    return {
      ...this.room(),
      padding: [TOP, 12, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: true }, points: { size: 7 }, y: false },
      scales: {
        x: {
          time,
          range: (_, min, max) =>
            min === drawing.plot.x[0] && max === drawing.plot.x.at(-1) ? this.whole() : [min, max],
        },
        y: { range: () => [0, this.drawing ? topOf(this.drawing) : 1] },
      },
      axes: [
        time
          ? { ...axis, values: (_, ticks, __, ___, step) => ticks.map((at) => clock(at, step)) }
          : { ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] },
        { ...axis, size: 54, values: (_, ticks) => ticks.map((tick) => tokens(tick)) },
      ],
      series: [{}, ...drawing.lines.map((line) => series(line, theme))],
      hooks: {
        drawClear: [(plot) => this.scales(plot, theme)],
        draw: [(plot) => this.marks(plot, theme)],
        setCursor: [(plot) => this.hover(plot.cursor.idx ?? null)],
        setScale: [(_, key) => key === "x" && this.zoomed(this.isZoomed())],
      },
    };
  }

  /** The window, the limit and the levels of main, as lines across. */
  private scales(plot: uPlot, theme: Theme): void {
    const drawing = this.drawing;
    if (!drawing) return;
    const { window, limit, levels } = drawing;
    for (const level of window === null ? [] : levels) {
      across(
        plot,
        theme,
        ((window ?? 0) * level) / 100,
        theme.soft,
        [1, 4],
        `level ${place(level)}`,
      );
    }
    if (limit !== null && limit !== window)
      across(plot, theme, limit, theme.limit, [], `limit ${tokens(limit)}`);
    if (window !== null) across(plot, theme, window, theme.ink, [], `window ${tokens(window)}`);
  }

  private marks(plot: uPlot, theme: Theme): void {
    const { ctx, bbox } = plot;
    const lane = lanes(SIGN_WIDTH * devicePixelRatio);
    ctx.save();
    ctx.textAlign = "center";
    for (const mark of this.drawing?.marks ?? []) {
      const x = Math.round(plot.valToPos(mark.x, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      sign(plot, theme, mark, x, lane(x));
    }
    ctx.restore();
  }
}
