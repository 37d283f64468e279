/** A small part of Markdown, as a tree of plain values; whatever else there is stays text. Pure. */

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

/** The blocks of a document. */
export function blocks(source: string): Block[] {
  const lines = source.replace(/\r\n?/g, "\n").split("\n");
  const made: Block[] = [];
  let at = 0;
  while (at < lines.length) at = block(lines, at, made);
  return made;
}

/** Read one block that begins at a line; gives the line after it. */
function block(lines: string[], at: number, made: Block[]): number {
  const line = lines[at] ?? "";
  if (line.trim() === "") return at + 1;
  if (FENCE.test(line)) return fenced(lines, at, made);
  if (RULE.test(line)) {
    made.push({ kind: "rule" });
    return at + 1;
  }
  const heading = HEADING.exec(line);
  if (heading) {
    const [, marks = "#", words = ""] = heading;
    made.push({ kind: "heading", depth: marks.length, inline: inline(title(words)) });
    return at + 1;
  }
  for (const [pattern, ordered] of [
    [BULLET, false],
    [NUMBER, true],
  ] as const) {
    if (pattern.test(line)) return list(lines, at, pattern, ordered, made);
  }
  return prose(lines, at, QUOTE.test(line), made);
}

/** A heading's words without the marks that may close it. */
function title(words: string): string {
  let end = words.length;
  while (end > 0 && " \t#".includes(words.charAt(end - 1))) end -= 1;
  return words.slice(0, end);
}

function fenced(lines: string[], at: number, made: Block[]): number {
  const mark = FENCE.exec(lines[at] ?? "")?.[1] ?? "```";
  let end = at + 1;
  while (end < lines.length && !(lines[end] ?? "").trim().startsWith(mark)) end += 1;
  made.push({ kind: "code", text: lines.slice(at + 1, end).join("\n") });
  return end + 1;
}

function list(
  lines: string[],
  at: number,
  pattern: RegExp,
  ordered: boolean,
  made: Block[],
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
  made.push({ kind: "list", ordered, items: items.map(inline) });
  return end;
}

function prose(lines: string[], at: number, quoted: boolean, made: Block[]): number {
  const words: string[] = [];
  let end = at;
  for (; end < lines.length && (end === at || goesOn(lines[end] ?? "", quoted)); end += 1) {
    const line = lines[end] ?? "";
    words.push(quoted ? (QUOTE.exec(line)?.[1] ?? line) : line.trim());
  }
  made.push({ kind: quoted ? "quote" : "paragraph", inline: inline(words.join(" ")) });
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
  const made: Inline[] = [];
  let end = 0;
  for (const found of text.matchAll(SPANS)) {
    if (found.index > end) made.push({ kind: "text", text: text.slice(end, found.index) });
    made.push(spanOf(found));
    end = found.index + found[0].length;
  }
  if (end < text.length) made.push({ kind: "text", text: text.slice(end) });
  return made;
}

function spanOf([, code, stars, lines, em]: RegExpExecArray | RegExpMatchArray): Inline {
  if (code !== undefined) return { kind: "code", text: code };
  const strong = stars ?? lines;
  return strong !== undefined ? { kind: "strong", text: strong } : { kind: "em", text: em ?? "" };
}
