import { effect } from "@preact/signals";
import { expect, test } from "vitest";
import { Board } from "../src/state/board";
import { gather } from "../src/state/gather";
import { view } from "./views";

function titles(board: Board): (string | null)[] {
  return board.views().map((one) => one.session.title);
}

test("a change of one session draws that session alone", () => {
  const board = new Board();
  board.put([view({ id: "a" }), view({ id: "b" })]);
  const drawn = { a: 0, b: 0 };
  effect(() => {
    board.of("a")?.value;
    drawn.a += 1;
  });
  effect(() => {
    board.of("b")?.value;
    drawn.b += 1;
  });
  board.put([view({ id: "b", title: "new" })]);
  expect(drawn).toEqual({ a: 1, b: 2 });
});

test("a snapshot takes away what the daemon has forgotten", () => {
  const board = new Board();
  board.put([view({ id: "a" }), view({ id: "b" })]);
  board.replace([view({ id: "b" })], board.mark());
  expect(board.of("a")).toBeUndefined();
  expect(board.known.value).toBe(true);
});

test("a snapshot says nothing about sessions that are older than it reaches", () => {
  const board = new Board();
  board.put([view({ id: "old", seen_at: 50 }), view({ id: "late", seen_at: 150 })]);
  board.replace([], board.mark(), 100);
  expect(board.views().map((one) => one.session.id)).toEqual(["old"]);
});

test("a snapshot is no news about what the stream told after it was asked for", () => {
  const board = new Board();
  board.put([view({ title: "old" })]);
  const asked = board.mark();
  board.put([view({ title: "new" }), view({ id: "c", title: "born" })]);
  board.replace([view({ title: "old" })], asked);
  expect(titles(board)).toEqual(["new", "born"]);
});

test("after a restart with another store the snapshot is the truth", () => {
  const board = new Board();
  board.put([view({ title: "much later" })]);
  board.replace([view({ title: "from the beginning" })], board.mark());
  expect(titles(board)).toEqual(["from the beginning"]);
});

test("what comes in quick succession goes through together, the last of each key", () => {
  const taken: string[][] = [];
  const asked: [() => void, number][] = [];
  let time = 1_000;
  const put = gather<string>(
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
