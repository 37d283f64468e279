/** What fills a thread, by category. Pure. */

import type { ExplainedPiece, ExplainedThread } from "../api-types";

export const UNEXPLAINED = "unexplained";
/** The colours of `--fill-1` to `--fill-11`; `--fill-0` is that of what is unexplained. */
const COLOURS = 11;

/** A category of the thread's tokens, or what is unexplained. */
export interface Slice {
  name: string;
  colour: number;
  tokens: number;
  /** Its share of what was sent, in percent. */
  share: number;
  pieces: ExplainedPiece[];
}

export function colourOf(place: number): number {
  return (place % COLOURS) + 1;
}

/** The recorded categories in their order, then what is unexplained, if that is not 0. */
export function slicesOf(thread: ExplainedThread, names: string[]): Slice[] {
  const share = (tokens: number) => (thread.sent ? (100 * tokens) / thread.sent : 0);
  const recorded = thread.categories.filter(({ tokens, note }) => tokens > 0 || !note);
  const slices = recorded.map(({ name, tokens, pieces }) => {
    return { name, colour: colourOf(names.indexOf(name)), tokens, share: share(tokens), pieces };
  });
  const { unexplained } = thread;
  if (unexplained === 0) return slices;
  const rest = { name: UNEXPLAINED, colour: 0, tokens: unexplained, pieces: [] };
  return [...slices, { ...rest, share: share(unexplained) }];
}

/** All but the last two names of a path. */
const LONG_PATH = /(?:\b[A-Z]:)?(?:[/\\][^/\\\s]+)+(?=[/\\][^/\\\s]+[/\\][^/\\\s]+)/g;

/** The name of a piece with its long paths shortened: Read …/src/main.py. */
export function shortName(what: string): string {
  return what.replace(LONG_PATH, "…");
}

/** Tools with how often each ran: "Read ×3, Bash". */
export function toolsText(tools: string[]): string {
  const times = new Map<string, number>();
  for (const tool of tools) times.set(tool, (times.get(tool) ?? 0) + 1);
  return [...times].map(([tool, many]) => (many > 1 ? `${tool} ×${many}` : tool)).join(", ");
}
