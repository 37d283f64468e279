import { expect, test } from "vitest";
import { listOptions, overviewHash } from "../src/state/list-address";
import { NO_FILTER } from "../src/state/session-list";

test("filter, search and sort survive the address", () => {
  const filter = {
    search: "a&b=c #?/ü",
    agent: "codex",
    project: "/home/u/a b",
    branch: "b: feature/x",
    host: "one",
    team: "web",
    user: "ada",
    model: "opus",
    version: "2",
    past: true,
  };
  for (const sort of ["need", "latest"] as const) {
    expect(listOptions(overviewHash({ filter, sort }))).toEqual({ filter, sort });
  }
});

test("an address without options, or with invalid ones, has the defaults", () => {
  const plain = { filter: NO_FILTER, sort: "need" };
  expect(overviewHash({ filter: NO_FILTER, sort: "need" })).toBe("#/");
  for (const hash of ["", "#/", "#/?", "#/?sort=toString&past=yes", "#/?%E0%A4%A&=&&"]) {
    expect(listOptions(hash)).toEqual(plain);
  }
});
