import { expect, test } from "vitest";
import { visibleRows } from "../src/state/visible-rows";

const HEIGHTS = [10, 20, 30, 10, 10];

test("the rows that overlap the visible part are drawn, and the space of the others is kept", () => {
  expect(visibleRows(HEIGHTS, -50, 5)).toEqual({ first: 0, end: 1, before: 0, after: 70 });
  expect(visibleRows(HEIGHTS, 10, 30)).toEqual({ first: 1, end: 2, before: 10, after: 50 });
  expect(visibleRows(HEIGHTS, 29, 61)).toEqual({ first: 1, end: 4, before: 10, after: 10 });
  expect(visibleRows(HEIGHTS, 65, 500)).toEqual({ first: 3, end: 5, before: 60, after: 0 });
});

test("no row is drawn above or below the list", () => {
  expect(visibleRows(HEIGHTS, 100, 200)).toEqual({ first: 5, end: 5, before: 80, after: 0 });
  expect(visibleRows(HEIGHTS, -200, -100)).toEqual({ first: 0, end: 0, before: 0, after: 80 });
  expect(visibleRows([], 0, 100)).toEqual({ first: 0, end: 0, before: 0, after: 0 });
});
