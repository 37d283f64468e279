/** The exact figures of one call, as the provider counted them. */

import type { CallRow } from "../api-types";
import { count, moment } from "../format";
import { now } from "../state/clock";
import { MARKS, type Mark } from "../timeline/marks";
import { sentOf } from "../timeline/plot";

/** So many marks are told of at one place. */
const MOST = 4;

interface Props {
  call: CallRow | null;
  source: string;
  /** What the formulas that are switched on would have said after it. */
  formulas: [string, number | null][];
  /** What happened just there. */
  near: Mark[];
  /** Whether nothing is pointed at, so that the last call is shown. */
  last: boolean;
}

export function Figures({ call, source, formulas, near, last }: Props) {
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
        {call.cycle} · {call.model ?? "model unknown"}
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
        the provider's usage of <code>{call.call}</code>; the thread is read from the {source}
      </p>
      <Near near={near} />
    </div>
  );
}

function Near({ near }: { near: Mark[] }) {
  return (
    <p class="figures-marks">
      {near.slice(0, MOST).map((mark, at) => (
        <span key={at}>
          <b>{MARKS[mark.kind].word}</b> {mark.text}
        </span>
      ))}
      {near.length > MOST && <span>{near.length - MOST} more</span>}
    </p>
  );
}
