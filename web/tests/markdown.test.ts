import { expect, test } from "vitest";
import { blocks, inline } from "../src/markdown";

test("headings, lists, code, quotes and paragraphs are distinguished", () => {
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

test("HTML and links stay text", () => {
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

test("an unclosed fence contains the rest of the document", () => {
  expect(blocks("```\na\n\n# b")).toEqual([{ kind: "code", text: "a\n\n# b" }]);
});

test("spans keep every character except their own marks", () => {
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

test("a large document built to be slow is parsed in time", () => {
  const lines = [
    "*".repeat(60_000),
    `# ${" #".repeat(30_000)}x`,
    "- ".repeat(30_000),
    "`".repeat(60_001),
  ];
  expect(blocks(lines.join("\n\n"))).toHaveLength(lines.length);
});
