import { expect, test } from "vitest";
import { heights } from "../src/components/column-chart";
import { points } from "../src/components/sparkline";

test("a trend ends at the right edge, its largest value at the top", () => {
  expect(points([0, 50, 100], 100, 106, 26)).toBe("3,23 53,13 103,3");
});

test("one value or none does not divide by zero", () => {
  expect(points([5], 5, 106, 26)).toBe("3,3");
  expect(points([0], 0, 106, 26)).toBe("3,23");
  expect(points([], 0)).toBe("");
});

test("a day without a known value has no column", () => {
  expect(heights([null, 5, 10], 50)).toEqual([0, 25, 50]);
  expect(heights([0, 0], 50)).toEqual([0, 0]);
});
