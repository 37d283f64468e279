/** Which lines a timeline has: each thread's, and those of the formulas that are switched on. */

import type { Formulas } from "../api";
import { formulaLine, type Plot, type Values } from "./plot";

export interface Line {
  name: string;
  values: Values;
  /** Which of the theme's line colours, and whether it is a formula's. */
  colour: number;
  formula: boolean;
}

/** The historic formulas that can be shown, and what each takes for the occupancy. */
export const FORMULA_WORDS: Record<string, string> = {
  max_cache_read_plus_sums: "max(cache_read) + sum(input) + sum(output)",
  sum_cache_creation: "sum of everything that was written to the cache",
  last_input: "the uncached input of the last call alone",
  result_sums: "the sums that a result message tells",
  effective: "sent - 0.9 x cache_read: the cost view",
};

/** What the formulas that are drawn say at a place; one that has no value there is left out. */
export function saidAt(lines: Line[], place: number): [string, number | null][] {
  return lines.flatMap(({ name, values, formula }) => {
    const value = values[place];
    return formula && value !== undefined ? [[name, value] as [string, number | null]] : [];
  });
}

export function linesOf(plot: Plot, shown: string[], formulas: Formulas | null): Line[] {
  const threads = plot.threads.map(({ thread, values }, at) => {
    return { name: thread, values, colour: at, formula: false };
  });
  const historic = shown.flatMap((name) => {
    const values = formulas?.[name];
    if (!values) return [];
    const colour = 1 + Object.keys(FORMULA_WORDS).indexOf(name);
    return [{ name, values: formulaLine(plot, values), colour, formula: true }];
  });
  return [...threads, ...historic];
}
