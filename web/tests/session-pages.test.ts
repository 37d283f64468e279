import { expect, test } from "vitest";
import { type ListPage, RequestFailed } from "../src/api";
import type { SessionView } from "../src/api-types";
import { SessionPages } from "../src/state/session-pages";
import { SessionStore } from "../src/state/session-store";
import { view } from "./views";

const FIRST = "/v1/sessions?limit=200";

/** A server whose list has these sessions, two on a page; a path ends with the place in it. */
function server(ids: string) {
  const asked: string[] = [];
  const answers = { ids, fails: false };
  const request = async (path: string): Promise<ListPage<SessionView[]>> => {
    asked.push(path);
    await Promise.resolve();
    if (answers.fails) throw new RequestFailed(503, "overloaded");
    const start = Number(path.split("&before=")[1] ?? 0);
    const size = path.includes("limit=1000") ? 4 : 2;
    const content = [...answers.ids.slice(start, start + size)].map((id) =>
      view({ id, seen_at: 100, ended_at: id < "a" ? 100 : null }),
    );
    const end = start + size;
    const next = end < answers.ids.length ? `${FIRST}&before=${end}` : null;
    return { content, next };
  };
  return { asked, answers, request };
}

function ids(store: SessionStore): string {
  return store
    .views()
    .map(({ session }) => session.id)
    .join("");
}

test("a page is requested once, however often more is asked for", async () => {
  const store = new SessionStore();
  const { asked, request } = server("abcdefghij");
  const pages = new SessionPages(store, request);
  await pages.reload(FIRST, 0);
  expect([ids(store), pages.last.value?.session.id]).toEqual(["ab", "b"]);
  const first = pages.loadMore(1, true);
  expect(pages.state.value).toBe("loading");
  await Promise.all([first, pages.loadMore(1, true)]);
  expect([ids(store), pages.last.value?.session.id]).toEqual(["abcd", "d"]);
  await Promise.all([pages.loadMore(Infinity, true), pages.loadMore(Infinity, true)]);
  expect([ids(store), pages.last.value, pages.state.value]).toEqual(["abcdefghij", null, ""]);
  expect(new Set(asked).size).toBe(asked.length);
});

test("the pages that were loaded are loaded again, and what is in none of them is removed", async () => {
  const store = new SessionStore();
  const { answers, request } = server("abcdef");
  const pages = new SessionPages(store, request);
  await pages.reload(FIRST, 0);
  await pages.loadMore(1, true);
  answers.ids = "xacdef";
  const again = pages.reload(FIRST, 0);
  await Promise.resolve();
  await Promise.resolve();
  expect(pages.last.value?.session.id).toBe("d"); // the list does not shrink meanwhile
  await again;
  expect([ids(store), pages.last.value?.session.id]).toEqual(["acdx", "d"]);
  answers.ids = "yacdef";
  await pages.reload(FIRST, null);
  expect(ids(store)).toBe("acdxy"); // the stream is open: x is only further down
});

test("sessions that ended are loaded only if they are shown", async () => {
  const { asked, request } = server("abc1234");
  const pages = new SessionPages(new SessionStore(), request);
  await pages.reload(FIRST, 0);
  await pages.loadMore(Infinity, false);
  expect([asked.length, pages.last.value?.session.ended_at]).toEqual([2, 100]);
  await pages.loadMore(Infinity, true);
  expect(pages.last.value).toBeNull();
});

test("a page that fails is asked for again on request, and the list goes on from there", async () => {
  const store = new SessionStore();
  const { answers, request } = server("abcd");
  const pages = new SessionPages(store, request);
  await pages.reload(FIRST, 0);
  answers.fails = true;
  await pages.loadMore(1, true);
  expect([pages.state.value, ids(store)]).toEqual(["failed", "ab"]);
  answers.fails = false;
  await pages.loadMore(1, true);
  expect([pages.state.value, ids(store)]).toEqual(["", "abcd"]);
});

test("a list that is loaded again replaces one that is being loaded", async () => {
  const store = new SessionStore();
  const { answers, request } = server("abcd");
  const pages = new SessionPages(store, request);
  const first = pages.reload(FIRST, 0);
  answers.ids = "xy";
  const second = pages.reload(FIRST, 0);
  await Promise.all([first, second]);
  expect([ids(store), pages.isRunning]).toEqual(["xy", false]);
});
