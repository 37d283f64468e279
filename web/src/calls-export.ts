/** The calls of a session as CSV. */

import type { CallRow } from "./api-types";
import { sentOf } from "./timeline/plot";

const COLUMNS = [
  "call",
  "thread",
  "cycle",
  "at",
  "model",
  "sent",
  "input",
  "cache_read",
  "cache_write",
  "cache_write_1h",
  "output",
] as const;

/** One line per call; an unknown value is empty, a time is in UTC. */
export function callsCsv(calls: CallRow[]): string {
  const lines = calls.map((call) => {
    const at = call.at === null ? null : new Date(call.at * 1000).toISOString();
    const row = { ...call, at, sent: sentOf(call) };
    return COLUMNS.map((column) => cell(row[column])).join(",");
  });
  return [COLUMNS.join(","), ...lines, ""].join("\r\n");
}

function cell(value: string | number | null): string {
  if (typeof value !== "string") return `${value ?? ""}`;
  // A spreadsheet would compute a text that begins like a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
