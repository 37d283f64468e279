/** The parts of what every call sends, in the words of `brimline explain`. Pure. */

import type { SystemPart } from "../api-types";

export function partLabel({ kind, name }: SystemPart): string {
  if (kind === "other") return "environment and other texts";
  if (kind === "skill" || kind === "agent") return name ? `${kind} ${name}` : `${kind}s`;
  return `${kind} ${name}`.trim();
}

/** How many tools of a part the agent called; null if it has none. */
export function calledTools({ kind, called }: SystemPart): number | null {
  return kind === "MCP server" || kind === "built-in tools" ? called : null;
}

/** How often the agent called a part; null if it cannot, or if its skills have no names. */
export function callsOf(part: SystemPart): number | null {
  const isNamed = (part.kind === "skill" || part.kind === "agent") && part.name !== "";
  return isNamed || calledTools(part) !== null ? part.calls : null;
}
