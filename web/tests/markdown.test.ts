import { expect, test } from "vitest";
import { blocks, inline } from "../src/timeline/markdown";

test("headings, lists, code, quotes and paragraphs are told apart", () => {
  const source =
    "# Title #\ntext\ngoes on\n\n- one\n  and on\n* two\n1. first\n> said\n---\n```py\n# code\n```\n";
  expect(blocks(source).map((block) => block.kind)).toEqual([
    "heading",
    "paragraph",
    "list",
    "list",
    "quote",
    "rule",
    "code",
  ]);
});

test("HTML and links stay the text that they are", () => {
  for (const hostile of [
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "<script>x</script>",
  ]) {
    expect(blocks(hostile)).toEqual([
      { kind: "paragraph", inline: [{ kind: "text", text: hostile }] },
    ]);
  }
});

test("a fence that is never closed holds the rest, and nothing is lost", () => {
  expect(blocks("```\na\n\n# b")).toEqual([{ kind: "code", text: "a\n\n# b" }]);
});

test("spans keep every character but their own marks", () => {
  expect(inline("a `b*c*` **d** *e* 2 * 3 * 4")).toEqual([
    { kind: "text", text: "a " },
    { kind: "code", text: "b*c*" },
    { kind: "text", text: " " },
    { kind: "strong", text: "d" },
    { kind: "text", text: " " },
    { kind: "em", text: "e" },
    { kind: "text", text: " 2 * 3 * 4" },
  ]);
});

test("a document as large as may be, made to be slow, is read all the same", () => {
  const lines = [
    "*".repeat(60_000),
    `# ${" #".repeat(30_000)}x`,
    "- ".repeat(30_000),
    "`".repeat(60_001),
  ];
  expect(blocks(lines.join("\n\n"))).toHaveLength(lines.length);
});
