/** The lines of a timeline: one per thread, and one per selected formula. */

import type { Formulas } from "../api";
import { formulaLine, type Plot, type Values } from "./plot";

export interface Line {
  name: string;
  values: Values;
  /** The index of the theme's line colour. */
  colour: number;
  formula: boolean;
}

/** The historic formulas, and what each computes. */
export const FORMULA_TEXTS: Record<string, string> = {
  max_cache_read_plus_sums: "max(cache_read) + sum(input) + sum(output)",
  sum_cache_creation: "sum of all tokens written to the cache",
  last_input: "only the uncached input of the last call",
  result_sums: "the totals of a result message",
  effective: "sent - 0.9 x cache_read: by cost",
};

/** The values of the selected formulas at a point; formulas without one are left out. */
export function formulaValuesAt(lines: Line[], place: number): [string, number | null][] {
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
    const colour = 1 + Object.keys(FORMULA_TEXTS).indexOf(name);
    return [{ name, values: formulaLine(plot, values), colour, formula: true }];
  });
  return [...threads, ...historic];
}
