import { expect, test } from "vitest";
import cases from "../../tests/figure_formats.json";
import {
  ago,
  clock,
  count,
  countRange,
  dollars,
  duration,
  isoDay,
  levelText,
  minute,
  modelName,
  moment,
  occupancy,
  percent,
  plural,
  shortPercent,
  tokens,
} from "../src/format";

test("every format writes null as unknown, never as 0", () => {
  for (const format of [count, tokens, percent, occupancy, dollars])
    expect(format(null)).toBe("unknown");
  expect(ago(null, 1)).toBe("unknown");
  expect(moment(null, 1)).toBe("unknown");
  expect(tokens(0)).toBe("0");
});

test("figures have the form that the commands and the status line give them", () => {
  expect(cases.tokens.map(([value]) => tokens(Number(value)))).toEqual(texts(cases.tokens));
  expect(cases.percent.map(([value]) => percent(Number(value)))).toEqual(texts(cases.percent));
  expect(cases.occupancy.map(([raw]) => occupancy(Number(raw)))).toEqual(texts(cases.occupancy));
});

function texts(rows: unknown[][]) {
  return rows.map(([, text]) => text);
}

test("a range that is too wide to say anything is left out", () => {
  const ranges = [[9, 17], [3, 12], [3, 13], [0, 2], null];
  expect(ranges.map(countRange)).toEqual(["9-17", "3-12", "", "", ""]);
});

test("a model has the short name that the commands give it", () => {
  expect(cases.model.map(([id]) => modelName(id ?? null))).toEqual(texts(cases.model));
});

test("a level has a decimal only if needed", () => {
  expect([shortPercent(50), shortPercent(83.5)]).toEqual(["50%", "83.5%"]);
  expect([levelText(83.5), levelText(-10)]).toEqual(["83.5%", "10 calls left"]);
});

test("less than a cent is not written as $0.00", () => {
  expect([dollars(0), dollars(0.004), dollars(12.3), dollars(1_204.2)]).toEqual([
    "$0.00",
    "< $0.01",
    "$12.30",
    "$1,204",
  ]);
});

test("a duration is written in its largest unit", () => {
  expect([40, 60, 3_599, 3_600, 86_400].map(duration)).toEqual([
    "40 s",
    "1 min",
    "59 min",
    "1 h",
    "1 d",
  ]);
});

test("a clock that is behind does not give a negative age", () => {
  expect(ago(105, 100)).toBe("now");
  expect(ago(10, 100)).toBe("1 min ago");
});

test("an axis shows times as precisely as its ticks", () => {
  const at = new Date(2026, 10, 14, 9, 5, 7).getTime() / 1000;
  expect([clock(at, 5), clock(at, 60), clock(at, 86_400)]).toEqual(["09:05:07", "09:05", "14 Nov"]);
});

test("a time to the minute has its day if that is not today", () => {
  const at = new Date(2026, 10, 14, 9, 5, 7).getTime() / 1000;
  expect([minute(at, at + 3_600), minute(at, at + 86_400)]).toEqual(["09:05", "14 Nov, 09:05"]);
});

test("one is singular", () => {
  expect([plural(1, "call"), plural(0, "call"), plural(1_200, "call")]).toEqual([
    "1 call",
    "0 calls",
    "1,200 calls",
  ]);
});

test("a day is named as the daemon names it", () => {
  expect(isoDay(new Date(2026, 0, 5, 0, 0, 1).getTime() / 1000)).toBe("2026-01-05");
  expect(isoDay(new Date(2026, 10, 15, 23, 59, 59).getTime() / 1000)).toBe("2026-11-15");
});
