import { afterEach, expect, test, vi } from "vitest";
import * as api from "../src/api";

const NO_ANSWER = { status: 0, message: "The daemon does not answer." };

afterEach(() => vi.unstubAllGlobals());

function answer(respond: () => Promise<Response>): void {
  vi.stubGlobal("fetch", respond);
}

/** A response whose connection breaks before its body is complete. */
function cutOff(status: number): Response {
  const body = new ReadableStream({
    pull: (controller) => controller.error(new TypeError("Failed to fetch")),
  });
  return new Response(body, { status });
}

test("a daemon that is not there does not answer", async () => {
  answer(() => Promise.reject(new TypeError("Failed to fetch")));
  await expect(api.daemon()).rejects.toMatchObject(NO_ANSWER);
});

test.each([200, 500])("ended within its reply (%i): does not answer", async (status) => {
  answer(() => Promise.resolve(cutOff(status)));
  const refused = api.daemon();
  await expect(refused).rejects.toBeInstanceOf(api.RequestFailed);
  await expect(refused).rejects.toMatchObject(NO_ANSWER);
});

test("a refusal says what the daemon said", async () => {
  const said = { error: "No such session.", hint: "Look at `brimline status`." };
  answer(() => Promise.resolve(Response.json(said, { status: 404 })));
  await expect(api.session("gone")).rejects.toMatchObject({
    status: 404,
    message: said.error,
    hint: said.hint,
  });
});

test("a proxy's own page is a refusal without a hint", async () => {
  answer(() => Promise.resolve(new Response("<html>", { status: 502 })));
  const expected = { status: 502, message: "The daemon answered 502.", hint: null };
  await expect(api.daemon()).rejects.toMatchObject(expected);
});
