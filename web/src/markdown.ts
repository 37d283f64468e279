/** Parse a small subset of Markdown into a tree; everything else stays text. Pure. */

export type Inline = { kind: "text" | "code" | "strong" | "em"; text: string };

export type Block =
  | { kind: "heading"; depth: number; inline: Inline[] }
  | { kind: "paragraph" | "quote"; inline: Inline[] }
  | { kind: "list"; ordered: boolean; items: Inline[][] }
  | { kind: "code"; text: string }
  | { kind: "rule" };

const FENCE = /^\s{0,3}(```|~~~)/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const BULLET = /^\s*[-*+]\s+(.*)$/;
const NUMBER = /^\s*\d{1,9}[.)]\s+(.*)$/;
const QUOTE = /^\s{0,3}>\s?(.*)$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;

export function blocks(source: string): Block[] {
  const lines = source.replace(/\r\n?/g, "\n").split("\n");
  const parsed: Block[] = [];
  let at = 0;
  while (at < lines.length) at = block(lines, at, parsed);
  return parsed;
}

/** Parse the block that starts at a line; returns the line after it. */
function block(lines: string[], at: number, parsed: Block[]): number {
  const line = lines[at] ?? "";
  if (line.trim() === "") return at + 1;
  if (FENCE.test(line)) return fenced(lines, at, parsed);
  if (RULE.test(line)) {
    parsed.push({ kind: "rule" });
    return at + 1;
  }
  const heading = HEADING.exec(line);
  if (heading) {
    const [, marks = "#", words = ""] = heading;
    parsed.push({ kind: "heading", depth: marks.length, inline: inline(title(words)) });
    return at + 1;
  }
  for (const [pattern, ordered] of [
    [BULLET, false],
    [NUMBER, true],
  ] as const) {
    if (pattern.test(line)) return list(lines, at, pattern, ordered, parsed);
  }
  return prose(lines, at, QUOTE.test(line), parsed);
}

/** A heading's text without closing marks. */
function title(words: string): string {
  let end = words.length;
  while (end > 0 && " \t#".includes(words.charAt(end - 1))) end -= 1;
  return words.slice(0, end);
}

function fenced(lines: string[], at: number, parsed: Block[]): number {
  const mark = FENCE.exec(lines[at] ?? "")?.[1] ?? "```";
  let end = at + 1;
  while (end < lines.length && !(lines[end] ?? "").trim().startsWith(mark)) end += 1;
  parsed.push({ kind: "code", text: lines.slice(at + 1, end).join("\n") });
  return end + 1;
}

function list(
  lines: string[],
  at: number,
  pattern: RegExp,
  ordered: boolean,
  parsed: Block[],
): number {
  const items: string[] = [];
  let end = at;
  for (; end < lines.length; end += 1) {
    const line = lines[end] ?? "";
    const item = pattern.exec(line);
    if (item) items.push(item[1] ?? "");
    else if (/^\s+\S/.test(line)) items[items.length - 1] += ` ${line.trim()}`;
    else break;
  }
  parsed.push({ kind: "list", ordered, items: items.map(inline) });
  return end;
}

function prose(lines: string[], at: number, quoted: boolean, parsed: Block[]): number {
  const words: string[] = [];
  let end = at;
  for (; end < lines.length && (end === at || goesOn(lines[end] ?? "", quoted)); end += 1) {
    const line = lines[end] ?? "";
    words.push(quoted ? (QUOTE.exec(line)?.[1] ?? line) : line.trim());
  }
  parsed.push({ kind: quoted ? "quote" : "paragraph", inline: inline(words.join(" ")) });
  return end;
}

function goesOn(line: string, quoted: boolean): boolean {
  if (quoted) return QUOTE.test(line);
  return (
    line.trim() !== "" && ![FENCE, HEADING, BULLET, NUMBER, QUOTE, RULE].some((p) => p.test(line))
  );
}

const SPANS = /`([^`]+)`|\*\*([^*]+)\*\*|__([^_]+)__|\*([^*\s][^*]*)\*/g;

/** The spans of a line: code, strong, emphasis; links and tags stay the text that they are. */
export function inline(text: string): Inline[] {
  const parsed: Inline[] = [];
  let end = 0;
  for (const match of text.matchAll(SPANS)) {
    if (match.index > end) parsed.push({ kind: "text", text: text.slice(end, match.index) });
    parsed.push(spanOf(match));
    end = match.index + match[0].length;
  }
  if (end < text.length) parsed.push({ kind: "text", text: text.slice(end) });
  return parsed;
}

function spanOf([, code, stars, lines, em]: RegExpExecArray | RegExpMatchArray): Inline {
  if (code !== undefined) return { kind: "code", text: code };
  const strong = stars ?? lines;
  return strong !== undefined ? { kind: "strong", text: strong } : { kind: "em", text: em ?? "" };
}
