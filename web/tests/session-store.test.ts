import { effect } from "@preact/signals";
import { expect, test } from "vitest";
import type { SessionView } from "../src/api-types";
import { SessionStore } from "../src/state/session-store";
import { throttleByKey } from "../src/state/throttle";
import { view } from "./views";

function titles(board: SessionStore): (string | null)[] {
  return board.views().map((one) => one.session.title);
}

function replaceAll(board: SessionStore, views: SessionView[], asked = board.currentTick()): void {
  board.addSnapshot(views, asked);
  board.removeOthers(new Set(views.map(({ session }) => session.id)), asked, 0);
}

test("a change of one session redraws only that session", () => {
  const board = new SessionStore();
  board.put([view({ id: "a" }), view({ id: "b" })]);
  const drawn = { a: 0, b: 0 };
  effect(() => {
    board.get("a")?.value;
    drawn.a += 1;
  });
  effect(() => {
    board.get("b")?.value;
    drawn.b += 1;
  });
  board.put([view({ id: "b", title: "new" })]);
  expect(drawn).toEqual({ a: 1, b: 2 });
});

test("a snapshot removes sessions that the daemon deleted", () => {
  const board = new SessionStore();
  board.put([view({ id: "a" }), view({ id: "b" })]);
  replaceAll(board, [view({ id: "b" })]);
  expect(board.get("a")).toBeUndefined();
  expect(board.loaded.value).toBe(true);
});

test("a snapshot keeps sessions that are older than its start", () => {
  const board = new SessionStore();
  board.put([view({ id: "old", seen_at: 50 }), view({ id: "late", seen_at: 150 })]);
  board.removeOthers(new Set(), board.currentTick(), 100);
  expect(board.views().map((one) => one.session.id)).toEqual(["old"]);
});

test("a snapshot does not replace what the stream sent after it was requested", () => {
  const board = new SessionStore();
  board.put([view({ title: "old" })]);
  const asked = board.currentTick();
  board.put([view({ title: "new" }), view({ id: "c", title: "born" })]);
  replaceAll(board, [view({ title: "old" })], asked);
  expect(titles(board)).toEqual(["new", "born"]);
});

test("after a restart with another store the snapshot replaces everything", () => {
  const board = new SessionStore();
  board.put([view({ title: "much later" })]);
  replaceAll(board, [view({ id: "b", title: "from the beginning" })]);
  expect(titles(board)).toEqual(["from the beginning"]);
});

test("items in quick succession are delivered together, the last of each key", () => {
  const taken: string[][] = [];
  const asked: [() => void, number][] = [];
  let time = 1_000;
  const put = throttleByKey<string>(
    (item) => item.charAt(0),
    (items) => taken.push(items),
    250,
    (run, ms) => asked.push([run, ms]),
    () => time,
  );
  put("a1");
  expect(asked.map(([, ms]) => ms)).toEqual([0]);
  asked.pop()?.[0]();
  time += 100;
  put("a2");
  put("b1");
  put("a3");
  expect(asked.map(([, ms]) => ms)).toEqual([150]);
  asked.pop()?.[0]();
  expect(taken).toEqual([["a1"], ["a3", "b1"]]);
});
