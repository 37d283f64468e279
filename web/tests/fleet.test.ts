import { afterEach, expect, test, vi } from "vitest";
import { caller, eventSource, isReachable, mayAct, unreachableReason } from "../src/app";
import { routeOf } from "../src/state/route";
import { view } from "./views";

const DAEMON = {
  version: "1",
  pid: 1,
  since: 1,
  address: "http://127.0.0.1:8420",
  heard: 0,
  malformed: 0,
  dropped: 0,
  late: 0,
  demo: false,
  hooks: {},
  problems: [],
  uplink: null,
};

afterEach(() => {
  eventSource.daemon.value = null;
  caller.value = null;
  vi.unstubAllGlobals();
});

test("the fleet has an address of its own", () => {
  expect(routeOf("#/fleet")).toEqual({ view: "fleet" });
});

test("at a local daemon every session can be sent to", () => {
  eventSource.daemon.value = { ...DAEMON, fleet: false };
  expect(isReachable(view())).toBe(true);
});

test("at a fleet's server only the scope act may send, and only to sessions of a machine", () => {
  eventSource.daemon.value = { ...DAEMON, fleet: true };
  expect(mayAct.value).toBe(false);
  caller.value = { organisation: "acme", actor: "Ada", scopes: ["read"], can_sign_out: true };
  expect(mayAct.value).toBe(false);
  caller.value = { ...caller.value, scopes: ["act", "read"] };
  expect(mayAct.value).toBe(true);
  expect(isReachable(view({ machine: null }))).toBe(false);
  expect(isReachable(view({ machine: "m1", receive: "all" }))).toBe(true);
  for (const receive of [null, "off", "handoffs"]) {
    expect(isReachable(view({ machine: "m1", receive }))).toBe(false);
    expect(unreachableReason(view({ machine: "m1", receive }))).toBe("accepts no messages");
  }
});
