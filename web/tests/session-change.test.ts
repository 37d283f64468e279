import { expect, test } from "vitest";
import type { SessionView } from "../src/api-types";
import { applyChange } from "../src/state/session-change";
import { SessionStore } from "../src/state/session-store";
import { StreamBuffer } from "../src/state/stream-buffer";
import { threadRow, view } from "./views";

const NOBODY = () => Promise.resolve(undefined);

/** Events that go to the board when the returned function is called. */
function incoming(
  board: SessionStore,
  ask: (id: string) => Promise<SessionView | undefined> = NOBODY,
) {
  const waiting = new Map<string, SessionView>();
  const events = new StreamBuffer(board, (one) => waiting.set(one.session.id, one), ask);
  const flush = () => {
    events.flush([...waiting.values()]);
    waiting.clear();
  };
  return { events, flush };
}

test("a change sets its own fields and keeps the others", () => {
  const before = view({ title: "old", host: "h" }, [threadRow(), threadRow({ thread: "sub" })], {
    trend: [1, 2, 3],
    unread: 1,
  });
  const after = applyChange(before, {
    id: "s",
    session: { title: "new" },
    threads: { sub: { sent: 7, limit: null } },
    trend: { keep: 2, add: [9] },
    calls_left: 4,
  });
  expect(after).toEqual({
    ...before,
    session: { ...before.session, title: "new" },
    threads: [threadRow(), threadRow({ thread: "sub", sent: 7, limit: null })],
    trend: [1, 2, 9],
    calls_left: 4,
  });
  expect(before.trend).toEqual([1, 2, 3]);
});

test("a list of threads replaces the list", () => {
  const threads = [threadRow({ thread: "sub" }), threadRow()];
  expect(applyChange(view(), { id: "s", threads }).threads).toEqual(threads);
});

test("a thread named like an Object property is treated as a name", () => {
  const before = view({}, [threadRow({ thread: "constructor" })]);
  expect(applyChange(before, { id: "s", threads: {} })).toEqual(before);
});

test("changes that arrive before a redraw are merged, none is lost", () => {
  const board = new SessionStore();
  const { events, flush } = incoming(board);
  events.put(view({ title: "a" }));
  void events.applyChange({ id: "s", session: { host: "h" } });
  void events.applyChange({ id: "s", unread: 2 });
  expect(board.get("s")).toBeUndefined();
  flush();
  void events.applyChange({ id: "s", calls_left: 3 });
  flush();
  const shown = board.get("s")?.value;
  expect([shown?.session.title, shown?.session.host]).toEqual(["a", "h"]);
  expect([shown?.unread, shown?.calls_left]).toEqual([2, 3]);
});

test("an unknown session is loaded once, and changes that arrive meanwhile are applied", async () => {
  const board = new SessionStore();
  const asked: string[] = [];
  let answer = (_: SessionView | undefined) => {};
  const { events, flush } = incoming(board, (id) => {
    asked.push(id);
    return new Promise((done) => {
      answer = done;
    });
  });
  const first = events.applyChange({ id: "s", unread: 1 });
  void events.applyChange({ id: "s", unread: 2 });
  answer(view({ title: "asked for" }));
  await first;
  flush();
  expect(asked).toEqual(["s"]);
  expect(board.get("s")?.value.session.title).toBe("asked for");
  expect(board.get("s")?.value.unread).toBe(2);
});

test("a session that is deleted before it is loaded stays unknown", async () => {
  const board = new SessionStore();
  const { events, flush } = incoming(board);
  await events.applyChange({ id: "s", unread: 1 });
  flush();
  expect(board.get("s")).toBeUndefined();
});
