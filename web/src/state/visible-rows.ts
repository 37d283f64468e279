/** Which rows of a long list are near the visible part. Pure. */

export interface VisibleRows {
  /** The rows from `first` up to, not including, `end`. */
  first: number;
  end: number;
  /** The heights of all rows before and after them. */
  before: number;
  after: number;
}

/** The rows that overlap the part from `top` to `bottom` of a list with these heights. */
export function visibleRows(heights: number[], top: number, bottom: number): VisibleRows {
  let first = 0;
  let before = 0;
  for (; first < heights.length; first += 1) {
    const height = heights[first] ?? 0;
    if (before + height > top) break;
    before += height;
  }
  let end = first;
  let at = before;
  for (; end < heights.length && at < bottom; end += 1) at += heights[end] ?? 0;
  const after = heights.slice(end).reduce((sum, height) => sum + height, 0);
  return { first, end, before, after };
}
