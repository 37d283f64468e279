import { expect, test } from "vitest";
import { routeOf, sessionHash } from "../src/state/route";

test("a session's id survives the address, whatever is in it", () => {
  for (const id of ["a", "a/b", "#?%&", "../../x", "ü <b>"]) {
    expect(routeOf(sessionHash(id))).toEqual({ view: "session", id });
  }
});

test("a broken address is no error", () => {
  expect(routeOf("#/session/%E0%A4%A")).toEqual({ view: "session", id: "%E0%A4%A" });
  expect(routeOf("#/session/")).toEqual({ view: "overview" });
  expect(routeOf("#/nowhere")).toEqual({ view: "overview" });
  expect(routeOf("")).toEqual({ view: "overview" });
  expect(routeOf("#/history")).toEqual({ view: "history" });
});
