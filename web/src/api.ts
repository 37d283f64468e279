/** Asking the daemon. */

import type {
  DaemonStatus,
  HandoffRow,
  History,
  Message,
  SessionView,
  Timeline,
} from "./api-types";

/** The historic formulas by name: a value for each call of the main thread, in its order. */
export type Formulas = Record<string, (number | null)[]>;

/** The daemon refused a request or did not answer; `hint` says what to do, if that is known. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint: string | null = null,
  ) {
    super(message);
  }
}

async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
  const answer = await fetch(path, { cache: "no-store", ...init }).catch(() => {
    throw new Refused(0, "The daemon does not answer.", "Is `brimline serve` running?");
  });
  // The secret was replaced, or the cookie is too old: the page itself then says how to sign in.
  if (answer.status === 401) location.replace("/");
  if (!answer.ok) throw await refusal(answer);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

async function refusal(answer: Response): Promise<Refused> {
  const told: unknown = await answer.json().catch(() => null);
  const text = textOf(told, "error") ?? `The daemon answered ${answer.status}.`;
  return new Refused(answer.status, text, textOf(told, "hint"));
}

function textOf(told: unknown, key: string): string | null {
  if (typeof told !== "object" || told === null) return null;
  const value = (told as Record<string, unknown>)[key];
  return typeof value === "string" ? value : null;
}

/** The address of what is behind a session's page. */
export function sessionPath(id: string, part = ""): string {
  return `/v1/sessions/${encodeURIComponent(id)}${part && `/${part}`}`;
}

export const sessions = (since: string) => ask<SessionView[]>(`/v1/sessions?since=${since}`);
export const session = (id: string) => ask<SessionView>(sessionPath(id));
export const timeline = (id: string) => ask<Timeline>(sessionPath(id, "timeline"));
export const formulas = (id: string) => ask<Formulas>(sessionPath(id, "formulas"));
export const messages = (id: string) => ask<Message[]>(sessionPath(id, "messages"));
export const daemon = () => ask<DaemonStatus>("/v1/daemon");
export const history = (since: string) => ask<History>(`/v1/history?since=${since}`);

export async function handoffs(id: string): Promise<HandoffRow[]> {
  return (await ask<{ handoffs: HandoffRow[] }>(sessionPath(id, "handoff"))).handoffs;
}

export async function send(id: string, text: string, urgent: boolean): Promise<string> {
  const sent = await ask<{ id: string }>(sessionPath(id, "messages"), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text, urgent }),
  });
  return sent.id;
}

export async function cancel(id: string, message: string): Promise<void> {
  const path = `${sessionPath(id, "messages")}/${encodeURIComponent(message)}`;
  await ask<unknown>(path, { method: "DELETE" });
}
