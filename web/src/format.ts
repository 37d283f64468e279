/** Formats of figures. Unknown is "unknown", never 0. */

export const UNKNOWN = "unknown";

const WHOLE = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

/** A count in full: 121,308. */
export function count(value: number | null): string {
  return value === null ? UNKNOWN : WHOLE.format(value);
}

/** The highest factor between the ends of a range that says something. */
const MAX_RANGE_FACTOR = 4;

/** The range of a forecast: 9-17; empty if there is none, or if it is too wide to say anything. */
export function countRange(range: readonly number[] | null): string {
  const [low = 0, high = 0] = range ?? [];
  return low > 0 && high <= MAX_RANGE_FACTOR * low ? `${count(low)}-${count(high)}` : "";
}

/** Tokens, shortened: 940, 3.4K, 121K, 1M, 1.05M, 1.01B; halves round up.
 *
 * The commands and the status line do the same; tests/figure_formats.json has the cases.
 */
export function tokens(value: number | null): string {
  if (value === null) return UNKNOWN;
  if (value < 1_000) return `${value}`;
  if (value < 9_950) return `${Math.round(value / 100) / 10}K`;
  if (value < 999_500) return `${Math.round(value / 1_000)}K`;
  if (value < 999_995_000) return `${Math.round(value / 10_000) / 100}M`;
  return `${Math.round(value / 10_000_000) / 100}B`;
}

/** A percentage with one decimal: 61.0%. */
export function percent(value: number | null): string {
  return value === null ? UNKNOWN : `${value.toFixed(1)}%`;
}

/** The percentage of a window: 61.0%, or 130.0%! if more was sent than it holds. */
export function occupancy(percentRaw: number | null): string {
  return `${percent(percentRaw)}${percentRaw !== null && percentRaw > 100 ? "!" : ""}`;
}

/** A percentage without needless decimals, as of a level: 50%, 83.5%. */
export function shortPercent(value: number): string {
  return `${Number(value.toFixed(1))}%`;
}

/** A level: 50%, or 10 calls left, which is -10. */
export function levelText(level: number): string {
  return level < 0 ? `${plural(-level, "call")} left` : shortPercent(level);
}

/** Dollars: < $0.01, $0.50, $12.30, $1,204. */
export function dollars(value: number | null): string {
  if (value === null) return UNKNOWN;
  if (value > 0 && value < 0.01) return "< $0.01";
  return value < 1_000 ? `$${value.toFixed(2)}` : `$${WHOLE.format(value)}`;
}

const DURATION_UNITS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
];

/** A duration in its largest unit: 40 s, 12 min, 3 h, 2 d. */
export function duration(seconds: number): string {
  const step = DURATION_UNITS.find(([size]) => seconds >= size);
  return step ? `${Math.floor(seconds / step[0])} ${step[1]}` : `${Math.floor(seconds)} s`;
}

/** How long ago something was; "now" for clocks that differ slightly. */
export function ago(at: number | null, now: number): string {
  if (at === null) return UNKNOWN;
  return now - at < 5 ? "now" : `${duration(now - at)} ago`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** A time: 14:03:07, with the day if it is not today. */
export function moment(at: number | null, now: number): string {
  if (at === null) return UNKNOWN;
  const then = new Date(at * 1000);
  const today = then.toDateString() === new Date(now * 1000).toDateString();
  return today ? CLOCK.format(then) : `${DATE.format(then)}, ${CLOCK.format(then)}`;
}

const MINUTES = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** A time to the minute: 14:03, with the day if it is not today. */
export function minute(at: number, now: number): string {
  const time = clock(at, 60);
  return isoDay(at) === isoDay(now) ? time : `${clock(at, 86_400)}, ${time}`;
}

/** A time on an axis with ticks `step` seconds apart: 14:03, 14:03:07 or 14 Nov. */
export function clock(at: number, step: number): string {
  const then = new Date(at * 1000);
  if (step >= 86_400) return DATE.format(then);
  return (step < 60 ? CLOCK : MINUTES).format(then);
}

/** An ISO date, 2026-11-14, shortened: 14 Nov. */
export function day(iso: string): string {
  const then = new Date(`${iso}T12:00:00`);
  return Number.isNaN(then.getTime()) ? iso : DATE.format(then);
}

const MONTH = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric" });

/** A month, 2026-11, as text: Nov 2026. */
export function monthName(month: string): string {
  const then = new Date(`${month}-15T12:00:00`);
  return Number.isNaN(then.getTime()) ? month : MONTH.format(then);
}

/** The local day of a time, as the daemon names it: 2026-11-14. */
export function isoDay(at: number): string {
  const then = new Date(at * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())}`;
}

/** "1 call", "2 calls". */
export function plural(amount: number, one: string, many = `${one}s`): string {
  return `${WHOLE.format(amount)} ${amount === 1 ? one : many}`;
}

const LONG_CONTEXT = "[1m]";
const BEDROCK_PREFIX = /^(?:[a-z]{2,6}(?:-gov)?\.)?[a-z0-9]+\.(?=[a-z])/;
const REVISION_SUFFIX = /(?:-v\d+)?(?::[a-z0-9]+)*$/;
const DATE_SUFFIX = /([-@]\d{8}|-\d{4}-\d{2}-\d{2}|[-@]latest|@default)$/;

/** The short name of a model: sonnet-4-5[1m], gpt-5.3-codex.
 *
 * That of `short_model` in Python; tests/figure_formats.json has the cases.
 */
export function modelName(model: string | null): string {
  if (model === null) return UNKNOWN;
  const id = model.toLowerCase();
  const mark = id.endsWith(LONG_CONTEXT) ? LONG_CONTEXT : "";
  let name = id.slice(0, id.length - mark.length);
  name = name.slice(name.lastIndexOf("/") + 1);
  if (name.includes(":") || BEDROCK_PREFIX.test(name)) {
    name = name.replace(BEDROCK_PREFIX, "").replace(REVISION_SUFFIX, "");
  }
  if (name.startsWith("claude-")) name = name.replaceAll(".", "-");
  return name.replace(DATE_SUFFIX, "").replace(/^claude-/, "") + mark;
}
