import { expect, test } from "vitest";
import type { HistoryPeriod, Split } from "../src/api-types";
import {
  axisStep,
  coloursOf,
  columnsOf,
  FIGURES,
  labelled,
  MAX_PARTS,
  periodName,
  ticksOf,
} from "../src/history/columns";

function part(key: string, calls: number, cost: number | null = calls): Split {
  const misses = { calls: 0, tokens: 0, cost: 0 };
  return { key, calls, cost, sessions: 1, compactions: 0, sent: 10 * calls, output: 0, misses };
}

function period(key: string, ...parts: Split[]): HistoryPeriod {
  const calls = parts.reduce((sum, one) => sum + one.calls, 0);
  return { key, total: part("total", calls), peak_sent: 7, parts };
}

test("a column has its coloured parts in their order, then the others", () => {
  const names = Array.from({ length: MAX_PARTS + 2 }, (_, at) => `p${at}`);
  const colours = coloursOf(names.map((name) => part(name, 1)));
  const parts = [part("p8", 1), part("p1", 4), part("p7", 2), part("p0", 3)];
  const [column] = columnsOf([period("2026-11-14", ...parts)], FIGURES.calls, colours);
  expect(column?.value).toBe(10);
  expect(column?.segments).toEqual([
    { name: "p0", colour: 1, value: 3 },
    { name: "p1", colour: 2, value: 4 },
    { name: "others", colour: 0, value: 3 },
  ]);
});

test("a figure whose parts do not add up has one segment", () => {
  const [column] = columnsOf([period("2026-11-14", part("a", 1))], FIGURES.peak, new Map());
  expect(column?.segments).toEqual([{ name: "largest context", colour: 1, value: 7 }]);
});

test("an unknown cost has no segment", () => {
  const colours = coloursOf([part("a", 1)]);
  const [column] = columnsOf([period("2026-11-14", part("a", 1, null))], FIGURES.cost, colours);
  expect(column?.segments).toEqual([]);
});

test("an axis has a few round steps up to the largest value", () => {
  expect([1, 3, 40_000, 160_000, 1_000_000].map((top) => axisStep(top))).toEqual([
    1, 1, 10_000, 50_000, 200_000,
  ]);
  expect(ticksOf(0, 1)).toEqual([0]);
  expect(ticksOf(4, 1)).toEqual([0, 1, 2, 3, 4]);
  expect(ticksOf(280, 0.01)).toEqual([0, 100, 200, 300]);
  expect(ticksOf(0.03, 0.01)).toEqual([0, 0.01, 0.02, 0.03]);
});

test("the last column has a label, and those before it as far as there is room", () => {
  expect(labelled(4, 8)).toEqual([0, 1, 2, 3]);
  expect(labelled(30, 8)).toEqual([1, 5, 9, 13, 17, 21, 25, 29]);
  expect(labelled(3, 0)).toEqual([2]);
});

test("a period is named shortly", () => {
  expect(periodName("2026-11-04")).toBe("4 Nov");
  expect(periodName("2026-W07")).toBe("week 7");
  expect(periodName("2026-11")).toBe("Nov 2026");
  expect(periodName("unknown")).toBe("unknown");
});
