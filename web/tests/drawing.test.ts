import { expect, test } from "vitest";
import { points } from "../src/components/sparkline";

test("a trend ends at the right edge, its largest value at the top", () => {
  expect(points([0, 50, 100], 100, 106, 26)).toBe("3,23 53,13 103,3");
});

test("one value or none does not divide by zero", () => {
  expect(points([5], 5, 106, 26)).toBe("3,3");
  expect(points([0], 0, 106, 26)).toBe("3,23");
  expect(points([], 0)).toBe("");
});
