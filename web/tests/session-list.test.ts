import { expect, test } from "vitest";
import type { SessionView } from "../src/api-types";
import {
  distinctValues,
  type Filter,
  groupStarts,
  NO_FILTER,
  type Sort,
  selectSessions,
} from "../src/state/session-list";
import { full, NOW, threadRow, view } from "./views";

const UNKNOWN = threadRow({ percent: null, percent_raw: null, percent_of_limit: null });
const VIEWS = [
  view({ id: "a", agent: "codex", project: "/src/zebra", host: "one" }, [full(20)], { cost: 2 }),
  view({ id: "b", project: "/src/apple", title: "Fix Login" }, [full(130)], { cost: 0 }),
  view({ id: "c", project: "/src/zebra", host: "two" }, [UNKNOWN]),
  view({ id: "d", seen_at: NOW - 50 }, [full(100, { at: NOW - 50, percent_of_limit: 120 })]),
  view({ id: "e", ended_at: NOW - 5 }, [full(99)], { rank: [2, 0, -NOW] }),
];

function ids(filter: Partial<Filter> = {}, sort: Sort = "need", of: SessionView[] = VIEWS): string {
  return selectSessions(of, { ...NO_FILTER, ...filter }, sort, NOW)
    .map((one) => one.session.id)
    .join("");
}

test("sessions are in the daemon's order", () => {
  expect(ids()).toBe("bdac");
});

test("a need comes before what is active, and that before what is idle", () => {
  const idle = view({ id: "f" }, [full(140)], { rank: [2, 0, -NOW] });
  const message = view({ id: "g" }, [full(10)], { rank: [0, 5, -10] });
  const level = view({ id: "h" }, [full(70)], { rank: [0, 2, -70] });
  expect(ids({}, "need", [idle, message, level, ...VIEWS])).toBe("hgbdacf");
});

test("within another order, equal sessions are in the daemon's", () => {
  expect(ids({}, "agent")).toBe("bdca");
  expect(ids({}, "title")).toBe("bdac");
});

test("the order does not depend on the order of arrival", () => {
  expect(ids({}, "need", VIEWS.toReversed())).toBe("bdac");
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

test("sessions sort by limit, cost, time, project and agent", () => {
  expect(ids({}, "limit")).toBe("dbac");
  expect(ids({}, "cost")).toBe("abdc");
  expect(ids({}, "latest")).toBe("bacd");
  expect(ids({}, "project")).toBe("dbac");
});

test("distinct values are sorted and have no duplicates", () => {
  expect(distinctValues(VIEWS, "host")).toEqual(["one", "two"]);
  expect(distinctValues(VIEWS, "agent")).toEqual(["claude", "codex"]);
});

test("a group begins where the first number of the rank changes", () => {
  const ranked = [0, 0, 1, 2, 2].map((group, at) =>
    view({ id: `${at}` }, undefined, { rank: [group, at, 0] }),
  );
  expect(groupStarts(ranked)).toEqual(["2", "3"]);
  expect([groupStarts(ranked.slice(3)), groupStarts([])]).toEqual([[], []]);
});
