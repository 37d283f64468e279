/** Requests to the daemon's HTTP API. */

import type {
  Caller,
  DaemonStatus,
  Explanation,
  FleetUsage,
  FleetView,
  HandoffRow,
  History,
  HistoryPeriod,
  MachineView,
  Message,
  Recall,
  SessionCompactions,
  SessionView,
  Timeline,
  ToolReport,
} from "./api-types";

/** The historic formulas by name: a value for each call of the main thread, in its order. */
export type Formulas = Record<string, (number | null)[]>;

/** The daemon refused a request or did not answer; `hint` says what to do, if that is known. */
export class RequestFailed extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint: string | null = null,
  ) {
    super(message);
  }
}

/** For `catch`: a request that failed has no result. */
export function ignoreFailure(error: unknown): undefined {
  if (!(error instanceof RequestFailed)) throw error;
}

/** The characters that change the order in which the text after them is shown. */
const ORDER_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Decode what the daemon sent. Others wrote the texts in it: each is shown in its own order. */
export function decode(json: string): unknown {
  return JSON.parse(json.replace(ORDER_CONTROLS, "\ufffd"));
}

async function request<T>(path: string, init: RequestInit = {}): Promise<T> {
  return (await requestPage<T>(path, init)).content;
}

/** A part of a list; `next` is the path of the part after it, null if this is the last. */
export interface ListPage<T> {
  content: T;
  next: string | null;
}

async function requestPage<T>(path: string, init: RequestInit = {}): Promise<ListPage<T>> {
  const answer = await fetch(path, { cache: "no-store", ...init }).catch(failUnanswered);
  // The secret was replaced or the cookie expired: "/" then explains how to sign in.
  if (answer.status === 401) location.replace("/");
  const text = await answer.text().catch(failUnanswered); // it may end between head and body
  if (!answer.ok) throw failureOf(answer.status, text);
  const next = answer.headers.get("link")?.match(/<(.+)>; rel="next"/)?.[1] ?? null;
  return { content: (answer.status === 204 ? undefined : decode(text)) as T, next };
}

function failUnanswered(): never {
  throw new RequestFailed(
    0,
    "The daemon does not answer.",
    "Start it with `brimline serve --background`.",
  );
}

function failureOf(status: number, text: string): RequestFailed {
  let body: unknown = null;
  try {
    body = decode(text);
  } catch {} // a proxy answers with a page of its own
  const message = textOf(body, "error") ?? `The daemon answered ${status}.`;
  return new RequestFailed(status, message, textOf(body, "hint"));
}

function textOf(body: unknown, key: string): string | null {
  if (typeof body !== "object" || body === null) return null;
  const value = (body as Record<string, unknown>)[key];
  return typeof value === "string" ? value : null;
}

/** The API path of a session, or of a part of it. */
export function sessionPath(id: string, part = ""): string {
  return `/v1/sessions/${encodeURIComponent(id)}${part && `/${part}`}`;
}

export const sessionPage = (path: string) => requestPage<SessionView[]>(path);
export const session = (id: string) => request<SessionView>(sessionPath(id));
export const timeline = (id: string) => request<Timeline>(sessionPath(id, "timeline"));
export const formulas = (id: string) => request<Formulas>(sessionPath(id, "formulas"));
export const explanation = (id: string) =>
  request<Explanation>(`${sessionPath(id, "explanation")}?series=1`);
export const recall = (id: string, words: string, before: boolean) =>
  request<Recall>(
    `${sessionPath(id, "recall")}?q=${encodeURIComponent(words)}&before_compaction=${before ? 1 : 0}`,
  );
export const compactions = (id: string) =>
  request<SessionCompactions>(sessionPath(id, "compactions"));
export const draftHandoff = (id: string) =>
  request<HandoffRow>(sessionPath(id, "handoff/draft"), { method: "POST" });
export const messages = (id: string) => request<Message[]>(sessionPath(id, "messages"));
export const daemon = () => request<DaemonStatus>("/v1/daemon");
export const identity = () => request<Caller>("/v1/identity");
export const fleet = (by: string, since: string, limit: number) =>
  request<FleetView>(`/v1/fleet?by=${by}&since=${since}&limit=${limit}`);
/** The query of a fleet's usage, also of its CSV file; empty values are left out. */
export function usageQuery(chosen: Record<string, string>): string {
  const pairs = Object.entries(chosen).filter(([, value]) => value !== "");
  return `?${new URLSearchParams(pairs)}`;
}

export const fleetUsage = (query: string) => request<FleetUsage>(`/v1/fleet/usage${query}`);
export const machines = () => request<MachineView[]>("/v1/machines");
export const history = (since: string) => request<History>(`/v1/history?since=${since}`);
export const tools = (project: string) =>
  request<ToolReport>(`/v1/tools?project=${encodeURIComponent(project)}`);
export const periods = (since: string, per: string, by: string) =>
  request<HistoryPeriod[]>(`/v1/history/periods?since=${since}&per=${per}&by=${by}`);

export async function handoffs(id: string): Promise<HandoffRow[]> {
  return (await request<{ handoffs: HandoffRow[] }>(sessionPath(id, "handoff"))).handoffs;
}

/** Queue a message; returns why nothing will deliver it, null if something will. */
export async function send(id: string, text: string, urgent: boolean): Promise<string | null> {
  const sent = await request<{ undeliverable: string | null }>(sessionPath(id, "messages"), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text, urgent }),
  });
  return sent.undeliverable;
}

export async function cancel(id: string, message: string): Promise<void> {
  const path = `${sessionPath(id, "messages")}/${encodeURIComponent(message)}`;
  await request<unknown>(path, { method: "DELETE" });
}

/** End the sign-in at a fleet's server; it answers with a redirect, which is not followed. */
export async function signOut(): Promise<void> {
  await fetch("/sign-out", { method: "POST", redirect: "manual" });
}
