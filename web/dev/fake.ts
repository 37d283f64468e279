/** A fake daemon inside Vite, for work on the page without a real one. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Connect, Plugin } from "vite";
import type { SessionView } from "../src/api-types.ts";
import { explanationOf, formulasOf, handoffsOf, historyOf, periodsOf, timelineOf } from "./past.ts";
import { later, sample } from "./sample.ts";

const SESSIONS = Number(process.env.BRIMLINE_DEV_SESSIONS ?? 14);
const RATE = Number(process.env.BRIMLINE_DEV_RATE ?? 1);
/** The content security policy of the daemon. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const clock = () => Date.now() / 1000;
/** Constant: another start time would mean another store to the page. */
const BEGAN = clock() - 5_000;

class World {
  readonly views = new Map<string, SessionView>();
  private readonly listeners = new Set<ServerResponse>();
  private mark = 0;

  constructor() {
    for (let at = 0; at < SESSIONS; at += 1) {
      const view = sample(at, clock());
      this.views.set(view.session.id, view);
    }
    if (RATE > 0 && SESSIONS > 13) setInterval(() => this.change(), 1000 / RATE).unref();
  }

  /** Change a session; the first ones, which show all cases, stay. */
  private change(): void {
    const ids = [...this.views.keys()].slice(13);
    const view = this.views.get(ids[Math.floor(Math.random() * ids.length)] ?? "");
    if (!view) return;
    const next = later(view, clock());
    this.views.set(view.session.id, next);
    this.mark += 1;
    for (const listener of this.listeners) this.tell(listener, next);
  }

  listen(request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(": connected\n\n");
    if (!request.headers["last-event-id"])
      for (const view of this.views.values()) this.tell(response, view);
    this.listeners.add(response);
    request.on("close", () => this.listeners.delete(response));
  }

  private tell(response: ServerResponse, view: SessionView): void {
    response.write(`id: ${this.mark}\nevent: session\ndata: ${JSON.stringify(view)}\n\n`);
  }
}

/** The body for a path; undefined if it is unknown. */
function answer(world: World, path: string): unknown {
  const now = clock();
  if (path.startsWith("/v1/sessions?")) return [...world.views.values()];
  if (path.startsWith("/v1/history/periods")) return periodsOf(now);
  if (path.startsWith("/v1/history")) return historyOf([...world.views.values()], now);
  if (path === "/v1/daemon")
    return {
      version: "0.5.0",
      pid: process.pid,
      since: BEGAN,
      address: "http://127.0.0.1:8420",
      heard: 18_204,
      malformed: 2,
      dropped: 0,
      problems: [],
      demo: true,
    };
  const [, , , id = "", part] = path.split("/");
  const view = world.views.get(decodeURIComponent(id));
  if (!view) return undefined;
  if (part === "timeline") return timelineOf(view, now);
  if (part?.startsWith("explanation")) return explanationOf(view, now);
  if (part === "messages") return timelineOf(view, now).messages;
  if (part === "formulas") return formulasOf(view, now);
  if (part === "handoff") return { handoffs: handoffsOf(view, now) };
  return view;
}

function draftOf(path: string) {
  const session = decodeURIComponent(path.split("/")[3] ?? "");
  const text = "# Draft handoff\n\n- open: the parser";
  const row = { id: "d1", session, at: clock(), path: "/home/dev/t.jsonl", sha256: "", text };
  return { ...row, author: "brimline", cycle: 0, calls: 3, draft: true, used_at: null };
}

/** The policy is sent only with the built page: Vite's own client needs inline scripts. */
function serve(world: World, policy: boolean): Connect.NextHandleFunction {
  return (request, response, next) => {
    const path = request.url ?? "/";
    if (!path.startsWith("/v1/")) {
      if (policy) response.setHeader("content-security-policy", POLICY);
      return next();
    }
    if (path === "/v1/stream") return world.listen(request, response);
    response.setHeader("content-type", "application/json");
    if (path.endsWith("/handoff/draft")) return void response.end(JSON.stringify(draftOf(path)));
    if (request.method === "POST") return void response.writeHead(201).end('{"id":"m9"}');
    if (request.method === "DELETE") return void response.writeHead(204).end();
    const body = answer(world, path);
    if (body === undefined)
      response.writeHead(404).end('{"error":"no such session","hint":"See /v1/sessions."}');
    else response.end(JSON.stringify(body));
  };
}

export function fakeDaemon(): Plugin {
  return {
    name: "fake daemon",
    configureServer(server) {
      server.middlewares.use(serve(new World(), false));
    },
    configurePreviewServer(server) {
      server.middlewares.use(serve(new World(), true));
    },
  };
}
