/** The current view, kept in the hash of the address. */

import { batch, signal } from "@preact/signals";

export type Route =
  | { view: "overview" }
  | { view: "session"; id: string }
  | { view: "history" }
  | { view: "fleet" };

/** The route of a hash; anything unknown is the overview. */
export function routeOf(hash: string): Route {
  const [view, rest] = split(hash.replace(/^#\/?/, ""));
  if (view === "session" && rest) return { view: "session", id: decoded(rest) };
  return view === "history" || view === "fleet" ? { view } : { view: "overview" };
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

export const FLEET_HASH = "#/fleet";

export const route = signal<Route>({ view: "overview" });

/** Keep `route` in sync with the address; `onOverview` is called with each hash of the overview. */
export function keepRoute(onOverview: (hash: string) => void): void {
  const read = () => {
    const { hash } = location;
    batch(() => {
      route.value = routeOf(hash);
      if (route.value.view === "overview") onOverview(hash);
    });
  };
  addEventListener("hashchange", read);
  read();
}

/** Show the fleet view if the address names no view. */
export function goToFleetIfUnset(): void {
  if (location.hash !== "") return;
  history.replaceState(null, "", FLEET_HASH);
  route.value = { view: "fleet" };
}

export function go(hash: string): void {
  location.hash = hash;
}
