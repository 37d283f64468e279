/** A squarified treemap of two levels: categories, and the pieces of each. Pure. */

import type { ExplainedPiece } from "../api-types";
import type { Slice } from "./slices";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Tile {
  box: Box;
  slice: Slice;
  tokens: number;
  /** The pieces it stands for: one, or the small ones; none for what is unexplained. */
  pieces: ExplainedPiece[];
}

/** Pieces that would get less than this many square pixels are merged into one tile. */
const MIN_TILE_AREA = 1_000;

export function tilesOf(slices: Slice[], width: number, height: number): Tile[] {
  const shown = slices.filter((slice) => slice.tokens > 0);
  const ordered = [...shown].sort((a, b) => b.tokens - a.tokens);
  const whole = ordered.reduce((sum, slice) => sum + slice.tokens, 0);
  const boxes = squarify(
    ordered.map((slice) => slice.tokens),
    { x: 0, y: 0, width, height },
  );
  const least = (whole * MIN_TILE_AREA) / Math.max(1, width * height);
  return ordered.flatMap((slice, at) => tilesOfSlice(slice, boxes[at] as Box, least));
}

function tilesOfSlice(slice: Slice, box: Box, least: number): Tile[] {
  const large = slice.pieces.filter((piece) => piece.tokens >= least);
  const small = slice.pieces.slice(large.length);
  const groups = large.map((piece) => ({ tokens: piece.tokens, pieces: [piece] }));
  const rest = slice.tokens - large.reduce((sum, piece) => sum + piece.tokens, 0);
  if (rest > 0) groups.push({ tokens: rest, pieces: small });
  groups.sort((a, b) => b.tokens - a.tokens);
  const boxes = squarify(
    groups.map((group) => group.tokens),
    box,
  );
  return groups.map((group, at) => ({ ...group, slice, box: boxes[at] as Box }));
}

/** Boxes that fill a box, with areas by size and as square as possible. */
export function squarify(sizes: number[], box: Box): Box[] {
  const whole = sizes.reduce((sum, size) => sum + size, 0);
  const scale = whole > 0 ? (box.width * box.height) / whole : 0;
  const areas = sizes.map((size) => size * scale);
  const boxes: Box[] = [];
  let free = { ...box };
  let row: number[] = [];
  for (const area of areas) {
    const side = Math.min(free.width, free.height);
    if (row.length > 0 && worstRatio([...row, area], side) > worstRatio(row, side)) {
      free = layOut(row, free, boxes);
      row = [];
    }
    row.push(area);
  }
  layOut(row, free, boxes);
  return boxes;
}

/** How far the boxes of a row along a side are from squares: 1 is a square. */
function worstRatio(row: number[], side: number): number {
  const sum = row.reduce((all, area) => all + area, 0);
  const [large, small] = [Math.max(...row), Math.min(...row)];
  return Math.max((side * side * large) / (sum * sum), (sum * sum) / (side * side * small));
}

/** Put a row along the shorter side of what is free; returns what is still free. */
function layOut(row: number[], free: Box, boxes: Box[]): Box {
  const sum = row.reduce((all, area) => all + area, 0);
  const isTall = free.width >= free.height;
  const side = isTall ? free.height : free.width;
  const depth = side > 0 ? sum / side : 0;
  let along = 0;
  for (const area of row) {
    const length = sum > 0 ? (side * area) / sum : 0;
    boxes.push(
      isTall
        ? { x: free.x, y: free.y + along, width: depth, height: length }
        : { x: free.x + along, y: free.y, width: length, height: depth },
    );
    along += length;
  }
  return isTall
    ? { ...free, x: free.x + depth, width: free.width - depth }
    : { ...free, y: free.y + depth, height: free.height - depth };
}
