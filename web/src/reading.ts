/** The meaning of a reading: level, state and age. Pure. */

import type {
  CacheMiss,
  CallRow,
  End,
  PromptCache,
  Quotas,
  SessionRow,
  SessionView,
  ThreadView,
} from "./api-types";
import {
  duration,
  minute,
  occupancy,
  percent,
  plural,
  shortPercent,
  tokens,
  UNKNOWN,
} from "./format";

export type Level = "unknown" | NonNullable<ThreadView["fullness"]>;

export const STALE_AFTER_S = 3_600;

export const LIVE_FOR_S = 24 * 3_600;

export type Occupancy = Pick<
  ThreadView,
  | "state"
  | "sent"
  | "window"
  | "limit"
  | "percent"
  | "percent_raw"
  | "levels"
  | "fullness"
  | "pending_level"
>;

export const LEVEL_TEXTS: Record<Level, string> = {
  unknown: "unknown",
  low: "low",
  medium: "medium",
  high: "high",
  limit: "at limit",
};

const SHORT_ID_CHARS = 8;

/** The headline of a session: its title, else its project's folder, else the start of its id. */
export function headline({ title, project, id }: Named): string {
  return title || folder(project) || id.slice(0, SHORT_ID_CHARS);
}

type Named = Pick<SessionRow, "title" | "project" | "id">;

/** The last part of a path. */
export function folder(path: string | null): string | null {
  return path && (path.split("/").filter(Boolean).at(-1) ?? path);
}

/** A short name for each project: its folder, or its path if another has the same folder. */
export function projectNames(paths: string[]): Record<string, string> {
  const names = paths.map((path) => folder(path) ?? path);
  const isShared = (name: string) => names.indexOf(name) !== names.lastIndexOf(name);
  const pairs = paths.map((path, at) => [path, names[at] ?? path] as const);
  return Object.fromEntries(pairs.map(([path, name]) => [path, isShared(name) ? path : name]));
}

/** How full a thread is, by the user's levels and its limit. */
export function levelOf(thread: Occupancy | undefined): Level {
  return thread?.fullness ?? "unknown";
}

/** Whether more was sent than the known window; then the window is probably wrong. */
export function isOverWindow(thread: Occupancy): boolean {
  return thread.percent_raw !== null && thread.percent_raw > 100;
}

export function mainThread(view: SessionView): ThreadView | undefined {
  return view.threads.find((thread) => thread.thread === "main") ?? view.threads[0];
}

export function subagentThreads(view: SessionView): ThreadView[] {
  const main = mainThread(view);
  return view.threads.filter((thread) => thread !== main);
}

/** The time of the last event or reading of a session. */
export function lastSeenAt(view: SessionView): number {
  return Math.max(view.session.seen_at, ...view.threads.map((thread) => thread.at ?? 0));
}

/** The time of the last call of the main thread, else when the session was last seen. */
export function lastCallAt(view: SessionView): number {
  return mainThread(view)?.at ?? view.session.seen_at;
}

/** The time of the last call of any thread, else when the session was last seen. */
export function lastActiveAt(view: SessionView): number {
  return Math.max(0, ...view.threads.map((thread) => thread.at ?? 0)) || view.session.seen_at;
}

/** The seconds from the first call to the last event of a session; null if no call has a time. */
export function secondsSinceFirstCall(
  view: SessionView,
  calls: Pick<CallRow, "at">[],
): number | null {
  const first = calls.reduce((least, { at }) => Math.min(least, at ?? least), Infinity);
  return first === Infinity ? null : Math.max(0, lastSeenAt(view) - first);
}

export function isLive(view: SessionView, now: number): boolean {
  return view.session.ended_at === null && now - lastSeenAt(view) < LIVE_FOR_S;
}

/** Whether a session is at work: it did not end, and had a call within the last hour. */
export function isActive(view: SessionView, now: number): boolean {
  return view.session.ended_at === null && now - lastActiveAt(view) <= STALE_AFTER_S;
}

/** The state to show: the API's, or "ended" or "stale". */
export function stateOf(view: SessionView, now: number): string {
  if (view.session.ended_at !== null) return "ended";
  if (now - lastActiveAt(view) > STALE_AFTER_S) return "stale";
  return mainThread(view)?.state ?? "unknown";
}

/** The text of the state. */
export function stateText(view: SessionView, now: number): string {
  const state = stateOf(view, now);
  if (state === "stale") return `stale, ${duration(now - lastCallAt(view))}`;
  if (state !== "unknown") return state;
  if (view.session.problem) return "unreadable";
  const main = mainThread(view);
  return main && main.cycle > 0 ? "awaiting next reply" : "awaiting first reply";
}

/** The limit in percent of the window, for drawing; the API has it for the main thread only. */
export function limitPercent(thread: ThreadView): number | null {
  if (thread.limit === null || thread.window === null || thread.window <= 0) return null;
  return (thread.limit / thread.window) * 100;
}

/** The limit of a thread that is at this percentage of its window. */
export function limitText(thread: Pick<ThreadView, "limit">, limitAt: number): string {
  return `limit: ${tokens(thread.limit)}, ${shortPercent(limitAt)} of the window`;
}

/** How many calls are left until the limit, else why that is not known. */
export function callsLeftText(view: SessionView): string {
  const left = view.calls_left;
  if (left === null) return noForecastReason(view);
  return left > 0 ? `about ${plural(left, "call")} left` : "no calls left";
}

/** Why there is no forecast of the calls left. */
export function noForecastReason(view: SessionView): string {
  const main = mainThread(view);
  if (main?.state === "compacting") return "compacting now";
  if (!main || main.sent === null)
    return main?.cycle ? "awaiting the next reply" : "awaiting the first reply";
  if (main.limit === null) return "the limit is unknown";
  return view.trend.length < MIN_FORECAST_CALLS ? "too few calls" : "slow growth";
}

const MIN_FORECAST_CALLS = 7;

/** The text of a bar, for screen readers. */
export function barText(thread: Occupancy | undefined, limitAt: number | null): string {
  if (!thread || thread.percent === null) return `Context ${UNKNOWN}`;
  const parts = [
    `${occupancy(thread.percent_raw)} of the window`,
    `${tokens(thread.sent)} of ${tokens(thread.window)} tokens`,
    LEVEL_TEXTS[levelOf(thread)],
    limitAt === null ? "limit unknown" : limitText(thread, limitAt),
  ];
  if (isOverWindow(thread)) parts.push("more than the window");
  if (thread.pending_level !== null) {
    parts.push(`message of level ${shortPercent(thread.pending_level)} not delivered yet`);
  }
  return parts.join(", ");
}

/** The quotas that the client reported: how much is used, and when they reset. After that it is
 * unknown: the text may be empty. */
export function quotaText({ five_hour, seven_day, spend_limit }: Quotas, now: number): string {
  const named = [
    ["5h", five_hour],
    ["7d", seven_day],
    ["spend", spend_limit],
  ] as const;
  const parts = named.flatMap(([name, quota]) =>
    quota && quota.resets_at > now
      ? [`${name} ${percent(quota.used_percentage)} used, resets ${minute(quota.resets_at, now)}`]
      : [],
  );
  return parts.join("; ");
}

/** How far an end is: 5h 94.0%, resets 18:40; until 14:32, then 217K again. */
export function endText({ kind, text, at }: End, now: number): string {
  if (at === null) return text;
  return kind === "cache"
    ? `until ${minute(at, now)}, ${text}`
    : `${text}, resets ${minute(at, now)}`;
}

/** Until when the cache is warm, and what is written again after that. */
export function cacheText(cache: PromptCache, now: number): string {
  if (cache.caching_observed === false) return "none: no reply reported cached tokens";
  if (cache.warm === null || cache.expires_at === null) return UNKNOWN;
  const isWarm = cache.warm && cache.expires_at > now;
  const parts = [`${isWarm ? "warm until" : "expired"} ${minute(cache.expires_at, now)}`];
  if (cache.recache_tokens_if_cold) {
    const when = isWarm ? "if it expires" : "with the next call";
    parts.push(`${tokens(cache.recache_tokens_if_cold)} tokens to write again ${when}`);
  }
  if (cache.hit_ratio !== null) {
    parts.push(`${percent(cache.hit_ratio * 100)} of the input read from it`);
  }
  return parts.join(", ");
}

/** The cause of a cache miss, and whether the client reported it. */
export function causeText({ cause, reported }: Pick<CacheMiss, "cause" | "reported">): string {
  if (reported === null) return cause;
  return `${cause === "unknown" ? reported : cause} (reported by the client)`;
}
