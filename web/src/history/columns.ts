/** The usage of a span as columns of parts, with its axes. Pure. */

import type { HistoryPeriod, Split } from "../api-types";
import { count, dollars, monthName, day as shortDay, tokens } from "../format";

/** So many parts have a colour of their own; the others share one. */
export const MAX_PARTS = 7;
export const OTHERS_COLOUR = 0;

export type FigureName = "cost" | "sent" | "calls" | "compactions" | "misses" | "sessions" | "peak";

export interface Figure {
  title: string;
  words: (value: number | null) => string;
  ofPeriod: (period: HistoryPeriod) => number | null;
  /** Of one part; missing if the parts of this figure do not add up. */
  ofPart?: (part: Split) => number | null;
  /** The least step of its axis. */
  step: number;
}

/** A figure that is the sum of its parts. */
function additive(
  title: string,
  words: Figure["words"],
  ofPart: (part: Split) => number | null,
  step = 1,
): Figure {
  return { title, words, ofPart, ofPeriod: ({ total }) => ofPart(total), step };
}

export const FIGURES: Record<FigureName, Figure> = {
  cost: additive("cost", dollars, ({ cost }) => cost, 0.01),
  sent: additive("tokens sent", tokens, ({ sent }) => sent),
  calls: additive("calls", count, ({ calls }) => calls),
  compactions: additive("compactions", count, ({ compactions }) => compactions),
  misses: additive("cost of cache misses", dollars, ({ misses }) => misses.cost, 0.01),
  sessions: { title: "sessions", words: count, ofPeriod: ({ total }) => total.sessions, step: 1 },
  peak: {
    title: "largest context",
    words: tokens,
    ofPeriod: ({ peak_sent }) => peak_sent,
    step: 1,
  },
};

export interface Segment {
  name: string;
  colour: number;
  value: number;
}

export interface Column {
  key: string;
  value: number | null;
  /** From the foot up: the coloured parts in their order, then the others. */
  segments: Segment[];
}

/** The colours of parts by key: the first ones have one each. */
export function coloursOf(parts: Split[]): Map<string, number> {
  return new Map(parts.slice(0, MAX_PARTS).map(({ key }, at) => [key, at + 1]));
}

export function columnsOf(
  periods: HistoryPeriod[],
  figure: Figure,
  colours: Map<string, number>,
): Column[] {
  return periods.map((period) => {
    const value = figure.ofPeriod(period);
    return { key: period.key, value, segments: segmentsOf(period, figure, value, colours) };
  });
}

function segmentsOf(
  period: HistoryPeriod,
  { title, ofPart }: Figure,
  value: number | null,
  colours: Map<string, number>,
): Segment[] {
  if (!ofPart) return value ? [{ name: title, colour: 1, value }] : [];
  const sizes = period.parts.map((part) => ({ key: part.key, value: ofPart(part) ?? 0 }));
  const coloured = [...colours].flatMap(([name, colour]) => {
    const own = sizes.find(({ key }) => key === name);
    return own && own.value > 0 ? [{ name, colour, value: own.value }] : [];
  });
  const rest = sizes.filter(({ key }) => !colours.has(key));
  const others = rest.reduce((sum, part) => sum + part.value, 0);
  if (others <= 0) return coloured;
  return [...coloured, { name: "others", colour: OTHERS_COLOUR, value: others }];
}

/** A step of 1, 2 or 5 times a power of ten, so that an axis has about four. */
export function axisStep(top: number, least = 1): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, top / 4)));
  return [1, 2, 5, 10].map((by) => by * power).find((step) => step * 5 >= top) ?? 10 * power;
}

/** The ticks of an axis from 0 up to the first one that is at least `top`. */
export function ticksOf(top: number, least: number): number[] {
  if (top <= 0) return [0];
  const step = axisStep(top, least);
  return Array.from({ length: Math.ceil(top / step - 1e-9) + 1 }, (_, at) => at * step);
}

/** The indexes of the columns that have a label, at most `most`: always the last. */
export function labelled(columns: number, most: number): number[] {
  const every = Math.max(1, Math.ceil(columns / Math.max(1, most)));
  const all = Array.from({ length: columns }, (_, at) => at);
  return all.filter((at) => (columns - 1 - at) % every === 0);
}

/** The name of a period: 14 Nov, week 47, Nov 2026. */
export function periodName(key: string): string {
  if (/^\d{4}-W\d\d$/.test(key)) return `week ${Number(key.slice(6))}`;
  return /^\d{4}-\d\d$/.test(key) ? monthName(key) : shortDay(key);
}
