/** How figures are written. Unknown is said as such, never as 0. */

export const UNKNOWN = "unknown";

const WHOLE = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const TENTH = new Intl.NumberFormat("en-GB", {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});

/** A count in full: 121,308. */
export function count(value: number | null): string {
  return value === null ? UNKNOWN : WHOLE.format(value);
}

/** Tokens, shortened: 940, 12.3K, 121K, 1M, 1.05M; no more is shown than three figures. */
export function tokens(value: number | null): string {
  if (value === null) return UNKNOWN;
  if (value < 1_000) return WHOLE.format(value);
  return value < 999_500 ? scaled(value, 1_000, "K") : scaled(value, 1_000_000, "M");
}

function scaled(value: number, unit: number, letter: string): string {
  const size = value / unit;
  const digits = size < 10 ? 2 : size < 100 ? 1 : 0;
  return `${Number(size.toFixed(digits))}${letter}`;
}

/** A percentage with one decimal: 61.0 %. */
export function percent(value: number | null): string {
  return value === null ? UNKNOWN : `${TENTH.format(value)} %`;
}

/** A place on the scale, without needless decimals: 50 %, 83.5 %. */
export function place(value: number): string {
  return `${Number(value.toFixed(1))} %`;
}

/** Dollars: $0.50, $12.30, $1,204; less than a cent is said so. */
export function dollars(value: number | null): string {
  if (value === null) return UNKNOWN;
  if (value > 0 && value < 0.01) return "< $0.01";
  return value < 1_000 ? `$${value.toFixed(2)}` : `$${WHOLE.format(value)}`;
}

const STEPS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
];

/** A span in its largest unit: 40 s, 12 min, 3 h, 2 d. */
export function span(seconds: number): string {
  const step = STEPS.find(([size]) => seconds >= size);
  return step ? `${Math.floor(seconds / step[0])} ${step[1]}` : `${Math.floor(seconds)} s`;
}

/** How long ago something was; clocks that differ by a little give "now". */
export function ago(at: number | null, now: number): string {
  if (at === null) return UNKNOWN;
  return now - at < 5 ? "now" : `${span(now - at)} ago`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** A moment: 14:03:07, with its day where that is not today. */
export function moment(at: number | null, now: number): string {
  if (at === null) return UNKNOWN;
  const then = new Date(at * 1000);
  const today = then.toDateString() === new Date(now * 1000).toDateString();
  return today ? CLOCK.format(then) : `${DATE.format(then)}, ${CLOCK.format(then)}`;
}

const MINUTES = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** A moment on an axis whose ticks are so many seconds apart: 14:03, with seconds or by the day. */
export function clock(at: number, step: number): string {
  const then = new Date(at * 1000);
  if (step >= 86_400) return DATE.format(then);
  return (step < 60 ? CLOCK : MINUTES).format(then);
}

/** A day of the calendar as the history has it, 2026-11-14, shortened: 14 Nov. */
export function day(iso: string): string {
  const then = new Date(`${iso}T12:00:00`);
  return Number.isNaN(then.getTime()) ? iso : DATE.format(then);
}

/** "1 call", "2 calls". */
export function plural(amount: number, one: string, many = `${one}s`): string {
  return `${WHOLE.format(amount)} ${amount === 1 ? one : many}`;
}
