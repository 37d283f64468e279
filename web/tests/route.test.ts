import { expect, test } from "vitest";
import { routeOf, sessionHash } from "../src/state/route";

test("a session id with any characters survives the address", () => {
  for (const id of ["a", "a/b", "#?%&", "../../x", "ü <b>"]) {
    expect(routeOf(sessionHash(id))).toEqual({ view: "session", id });
  }
});

test("a malformed address is not an error", () => {
  expect(routeOf("#/session/%E0%A4%A")).toEqual({ view: "session", id: "%E0%A4%A" });
  expect(routeOf("#/session/")).toEqual({ view: "overview" });
  expect(routeOf("#/nowhere")).toEqual({ view: "overview" });
  expect(routeOf("#/?search=session/x&project=%2Fa")).toEqual({ view: "overview" });
  expect(routeOf("")).toEqual({ view: "overview" });
  expect(routeOf("#/history")).toEqual({ view: "history" });
});
