/** The legend of the timeline's lines and symbols. */

import type { Line } from "../timeline/lines";
import { MARKS, type Mark, type MarkKind } from "../timeline/marks";

const DASHES = ["", "6 3", "2 3", "8 3 2 3"];

export function Legend({ lines, marks }: { lines: Line[]; marks: Mark[] }) {
  const kinds = (Object.keys(MARKS) as MarkKind[]).filter((kind) =>
    marks.some((mark) => mark.kind === kind),
  );
  return (
    <ul class="legend" aria-label="Legend">
      {lines.map((line) => (
        <li key={line.name}>
          <svg viewBox="0 0 24 8" aria-hidden="true" data-line={(line.colour % 6) + 1}>
            <path d="M0 4h24" stroke-dasharray={line.formula ? "2 3" : DASHES[line.colour % 4]} />
          </svg>
          {line.name}
        </li>
      ))}
      {kinds.map((kind) => (
        <li key={kind}>
          {kind === "miss" ? (
            <svg class="miss" viewBox="0 0 6 12" aria-hidden="true">
              <path d="M3 0v12" />
            </svg>
          ) : (
            <b class="sign">{MARKS[kind].symbol}</b>
          )}{" "}
          {MARKS[kind].word}
        </li>
      ))}
    </ul>
  );
}
