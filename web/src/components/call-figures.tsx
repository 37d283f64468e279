/** The exact figures of one call, from the provider's usage. */

import type { CallRow } from "../api-types";
import { count, modelName, moment } from "../format";
import { now } from "../state/clock";
import { MARKS, type Mark } from "../timeline/marks";
import { sentOf } from "../timeline/plot";

const MAX_MARKS = 4;

interface Props {
  call: CallRow | null;
  source: string;
  /** The values of the selected historic formulas after the call. */
  formulas: [string, number | null][];
  /** The marks at the call. */
  near: Mark[];
  /** Whether this is the last call, shown when no point is selected. */
  last: boolean;
}

export function CallFigures({ call, source, formulas, near, last }: Props) {
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
      <p class="figures-source">
        usage of <code>{call.call}</code> as reported by the provider; source: {source}
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
