/** The exact figures of one call, from the provider's usage. */

import type { CallRow, ExplainedCall } from "../api-types";
import { colourOf, toolsText, UNEXPLAINED } from "../explanation/slices";
import { count, modelName, moment, tokens } from "../format";
import { now } from "../state/clock";
import { MARKS, type Mark } from "../timeline/marks";
import { sentOf } from "../timeline/plot";
import { Swatch } from "./swatch";

const MAX_MARKS = 4;

interface Props {
  call: CallRow | null;
  source: string;
  /** The values of the selected historic formulas after the call. */
  formulas: [string, number | null][];
  /** The marks at the call. */
  near: Mark[];
  /** What the call sent by category, if that is drawn, and the names of the categories. */
  parts: ExplainedCall | null;
  names: string[];
  /** Whether this is the last call, shown when no point is selected. */
  last: boolean;
}

export function CallFigures({ call, source, formulas, near, parts, names, last }: Props) {
  if (!call) return null;
  const figures: [string, string][] = [
    ["sent", count(sentOf(call))],
    ["input", count(call.input)],
    ["cache_read", count(call.cache_read)],
    ["cache_write", count(call.cache_write)],
    ["output", count(call.output)],
  ];
  return (
    <div class="figures" data-testid="hover" data-call={call.call}>
      <p class="figures-head">
        <b>{last ? "last call" : "call"}</b> {moment(call.at, now.peek())} · {call.thread} · cycle{" "}
        {call.cycle} · {call.model === null ? "model unknown" : modelName(call.model)}
      </p>
      <dl>
        {figures.map(([name, value]) => (
          <div key={name}>
            <dt>{name.replace("_", " ")}</dt>
            <dd data-field={name}>{value}</dd>
          </div>
        ))}
        {formulas.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd data-field={name}>{count(value)}</dd>
          </div>
        ))}
      </dl>
      {parts && <CallCategories parts={parts} names={names} />}
      <p class="figures-source">
        as reported by the provider; source: {source}; <code>{call.call}</code>
      </p>
      <NearbyMarks near={near} />
    </div>
  );
}

function NearbyMarks({ near }: { near: Mark[] }) {
  return (
    <p class="figures-marks">
      {near.slice(0, MAX_MARKS).map((mark, at) => (
        <span key={at}>
          <b>{MARKS[mark.kind].word}</b> {mark.text}
        </span>
      ))}
      {near.length > MAX_MARKS && <span>{near.length - MAX_MARKS} more</span>}
    </p>
  );
}

function CallCategories({ parts, names }: { parts: ExplainedCall; names: string[] }) {
  const sizes = names.map((name, place) => {
    return { name, colour: colourOf(place), tokens: parts.categories[place] ?? 0 };
  });
  sizes.push({ name: UNEXPLAINED, colour: 0, tokens: parts.unexplained });
  return (
    <div data-testid="call-categories">
      <ul class="call-categories">
        {sizes
          .filter((size) => size.tokens !== 0)
          .map((size) => (
            <li key={size.name}>
              <Swatch colour={size.colour} /> {size.name} <b>{tokens(size.tokens)}</b>
            </li>
          ))}
      </ul>
      {parts.tools.length > 0 && <p>ran {toolsText(parts.tools)}</p>}
    </div>
  );
}
