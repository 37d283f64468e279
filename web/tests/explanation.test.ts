import { expect, test } from "vitest";
import type { ExplainedCall, ExplainedThread, SystemPart } from "../src/api-types";
import { columnsOf, thinned } from "../src/explanation/bands";
import { shortName, slicesOf, toolsText } from "../src/explanation/slices";
import { calledTools, callsOf, partLabel } from "../src/explanation/system-parts";
import { squarify, tilesOf } from "../src/explanation/treemap";
import { plotOf } from "../src/timeline/plot";
import { call as callRow, NOW } from "./views";

const NAMES = ["system and tools", "user words", "tool results"];

function piece(what: string, tokens: number) {
  return { what, call: `call of ${what}`, tokens, record: 1 };
}

function thread(part: Partial<ExplainedThread> = {}): ExplainedThread {
  const results = [piece("Read a.py", 50), piece("Read b.py", 20)];
  return {
    thread: "main",
    model: null,
    sent: 200,
    categories: [
      { name: "system and tools", tokens: 100, pieces: [piece("system prompt", 100)], note: null },
      { name: "tool results", tokens: 70, pieces: results, note: null },
    ],
    system_parts: [],
    answered_at: null,
    unexplained: 30,
    tool_results: { by_tool: [], by_server: [], by_file: [], by_command: [] },
    waste: [],
    waste_total: null,
    misses: [],
    pending: 0,
    cycles: [],
    ...part,
  };
}

function call(number: number, sent: number): ExplainedCall {
  const id = `m${number}`;
  return { call: id, at: null, sent, categories: [sent, 0, 0], unexplained: 0, tools: [] };
}

test("a category keeps its colour, and the rest is unexplained", () => {
  const slices = slicesOf(thread(), NAMES);
  const figures = slices.map(({ name, colour, tokens, share }) => [name, colour, tokens, share]);
  expect(figures).toEqual([
    ["system and tools", 1, 100, 50],
    ["tool results", 3, 70, 35],
    ["unexplained", 0, 30, 15],
  ]);
  expect(slicesOf(thread({ unexplained: 0 }), NAMES)).toHaveLength(2);
});

test("a category that the client does not record has no slice", () => {
  const categories = [{ name: "user words", tokens: 0, pieces: [], note: "not recorded" }];
  expect(slicesOf(thread({ categories, unexplained: 0 }), NAMES)).toEqual([]);
});

test("boxes fill their box by size, and are nearly square", () => {
  const sizes = [6, 6, 4, 3, 2, 2, 1];
  const boxes = squarify(sizes, { x: 0, y: 0, width: 600, height: 400 });
  boxes.forEach(({ width, height }, at) => {
    expect(width * height).toBeCloseTo(10_000 * (sizes[at] ?? 0));
    expect(Math.max(width / height, height / width)).toBeLessThan(3);
  });
  expect(squarify([], { x: 0, y: 0, width: 9, height: 9 })).toEqual([]);
});

test("tiles do not overlap and small pieces are merged", () => {
  const small = Array.from({ length: 500 }, (_, at) => piece(`Bash ${at}`, 1));
  const categories = [
    { name: "user words", tokens: 400, pieces: [piece("Please", 400)], note: null },
    {
      name: "tool results",
      tokens: 1_500,
      pieces: [piece("Read a.py", 1_000), ...small],
      note: null,
    },
  ];
  const slices = slicesOf(thread({ categories, unexplained: 0, sent: 1_900 }), NAMES);
  const tiles = tilesOf(slices, 600, 300);
  expect(tiles.map((tile) => [tile.tokens, tile.pieces.length])).toEqual([
    [1_000, 1],
    [500, 500],
    [400, 1],
  ]);
  for (const [at, one] of tiles.entries())
    for (const other of tiles.slice(at + 1)) {
      const isBeside =
        one.box.x + one.box.width <= other.box.x + 0.001 ||
        other.box.x + other.box.width <= one.box.x + 0.001 ||
        one.box.y + one.box.height <= other.box.y + 0.001 ||
        other.box.y + other.box.height <= one.box.y + 0.001;
      expect(isBeside).toBe(true);
    }
});

test("what is unexplained has a tile without a piece", () => {
  const tiles = tilesOf(slicesOf(thread(), NAMES), 600, 300);
  expect(tiles.at(-1)).toMatchObject({ tokens: 30, pieces: [] });
});

test("of many columns the largest of neighbours are drawn, in order and without gaps", () => {
  const columns = Array.from({ length: 10_000 }, (_, at) => {
    return { from: at, to: at + 1, call: call(at, at === 4_321 ? 99_999 : at) };
  });
  const drawn = thinned(columns, 1_000);
  expect(drawn).toHaveLength(1_000);
  expect(drawn.some((one) => one.call.sent === 99_999)).toBe(true);
  expect(drawn.every((one, at) => at === 0 || one.from === drawn[at - 1]?.to)).toBe(true);
  expect(drawn.at(-1)?.to).toBe(10_000);
  expect(thinned(columns.slice(0, 10), 1_000)).toHaveLength(10);
});

test("the column of a call reaches halfway to its neighbours of the same thread", () => {
  const calls = ["m0", "m1", "scout", "m2"].map((id, at) =>
    callRow(id, { thread: id === "scout" ? "scout" : "main", at: NOW + at }),
  );
  const series = [0, 1, 2, 3].map((at) => call(at, 10)); // the last one is not stored yet
  const columns = columnsOf(thread({ series }), plotOf(calls, "calls"));
  expect(columns.map(({ from, to, call: own }) => [own.call, from, to])).toEqual([
    ["m0", 0.5, 1.5],
    ["m1", 1.5, 3],
    ["m2", 3, 5],
  ]);
});

test("long paths are shortened at their start", () => {
  expect(shortName("Read /home/me/project/src/main.py")).toBe("Read …/src/main.py");
  expect(shortName("Read C:\\Users\\me\\src\\main.cs")).toBe("Read …\\src\\main.cs");
  expect(shortName("Bash make test")).toBe("Bash make test");
  expect(shortName("Read src/main.py")).toBe("Read src/main.py");
});

test("tools are counted in the order in which they ran first", () => {
  expect(toolsText(["Read", "Bash", "Read"])).toBe("Read ×2, Bash");
  expect(toolsText([])).toBe("");
});

test("what is unknown of a part of the system is not shown as 0", () => {
  const shown = (part: Partial<SystemPart>) => {
    const known = { name: "", tokens: 9, tools: 0, called: 0, calls: 0, is_estimated: false };
    const one: SystemPart = { kind: "other", ...known, ...part };
    return [partLabel(one), calledTools(one), callsOf(one)];
  };
  expect(shown({ kind: "skill" })).toEqual(["skills", null, null]); // Codex has one list of them
  expect(shown({ kind: "skill", name: "knots" })).toEqual(["skill knots", null, 0]);
  expect(shown({ kind: "other" })).toEqual(["environment and other texts", null, null]);
  expect(shown({ kind: "memory file", name: "a.md" })).toEqual(["memory file a.md", null, null]);
  expect(shown({ kind: "built-in tools", called: 2, calls: 3 })).toEqual(["built-in tools", 2, 3]);
});
