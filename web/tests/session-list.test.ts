import { expect, test } from "vitest";
import type { SessionView } from "../src/api-types";
import {
  distinctValues,
  type Filter,
  NO_FILTER,
  type Sort,
  selectSessions,
} from "../src/state/session-list";
import { full, NOW, threadRow, view } from "./views";

const UNKNOWN = threadRow({ percent: null, percent_raw: null, percent_of_limit: null });
const VIEWS = [
  view({ id: "a", agent: "codex", project: "/src/zebra", host: "one" }, [full(20)]),
  view({ id: "b", project: "/src/apple", title: "Fix Login" }, [full(130)]),
  view({ id: "c", project: "/src/zebra", host: "two" }, [UNKNOWN]),
  view({ id: "d", seen_at: NOW - 50 }, [full(100, { at: NOW - 50, percent_of_limit: 120 })]),
  view({ id: "e", ended_at: NOW - 5 }, [full(99)]),
];

function ids(
  filter: Partial<Filter> = {},
  sort: Sort = "fullest",
  of: SessionView[] = VIEWS,
): string {
  return selectSessions(of, { ...NO_FILTER, ...filter }, sort, NOW)
    .map((one) => one.session.id)
    .join("");
}

test("the fullest session is first, an overshoot before a full window, unknown last", () => {
  expect(ids()).toBe("bdac");
});

test("sessions that are at work come before idle ones, unless the order is by name or time", () => {
  const idle = view({ id: "f", seen_at: NOW - 7_200 }, [full(140, { at: NOW - 7_200 })]);
  expect(ids({}, "fullest", [idle, ...VIEWS])).toBe("bdacf");
  expect(ids({}, "limit", [idle, ...VIEWS])).toBe("dabcf");
  expect(ids({}, "agent", [idle, ...VIEWS])).toBe("bcdfa");
});

test("the order does not depend on the order of arrival", () => {
  expect(ids({}, "fullest", VIEWS.toReversed())).toBe("bdac");
});

test("ended sessions are listed only on request", () => {
  expect(ids({ past: true })).toBe("bdace");
});

test("filters and search keep the sessions that match all of them", () => {
  expect(ids({ project: "/src/zebra" })).toBe("ac");
  expect(ids({ project: "/src/zebra", host: "two" })).toBe("c");
  expect(ids({ agent: "codex" })).toBe("a");
  expect(ids({ search: "login  APPLE" })).toBe("b");
  expect(ids({ search: "login zebra" })).toBe("");
});

test("sessions sort by limit, time, project and agent", () => {
  expect(ids({}, "limit")).toBe("dabc");
  expect(ids({}, "latest")).toBe("abcd");
  expect(ids({}, "project")).toBe("dbac");
});

test("distinct values are sorted and have no duplicates", () => {
  expect(distinctValues(VIEWS, "host")).toEqual(["one", "two"]);
  expect(distinctValues(VIEWS, "agent")).toEqual(["claude", "codex"]);
});
