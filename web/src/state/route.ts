/** The current view, kept in the hash of the address. */

import { signal } from "@preact/signals";

export type Route = { view: "overview" } | { view: "session"; id: string } | { view: "history" };

/** The route of a hash; anything unknown is the overview. */
export function routeOf(hash: string): Route {
  const [view, rest] = split(hash.replace(/^#\/?/, ""));
  if (view === "session" && rest) return { view: "session", id: decoded(rest) };
  return view === "history" ? { view: "history" } : { view: "overview" };
}

function split(path: string): [string, string] {
  const at = path.indexOf("/");
  return at < 0 ? [path, ""] : [path.slice(0, at), path.slice(at + 1)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function sessionHash(id: string): string {
  return `#/session/${encodeURIComponent(id)}`;
}

export const route = signal<Route>({ view: "overview" });

/** Keep `route` in sync with the address. */
export function keepRoute(): void {
  const read = () => {
    route.value = routeOf(location.hash);
  };
  addEventListener("hashchange", read);
  read();
}

export function go(hash: string): void {
  location.hash = hash;
}
