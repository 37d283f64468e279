/** What each call of a thread sent, by category, with the figures of one call. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ExplainedCall, ExplainedThread } from "../api-types";
import { cycleStarts, drawArea } from "../explanation/area";
import { colourOf, toolsText, UNEXPLAINED } from "../explanation/slices";
import { count, moment, plural, tokens } from "../format";
import { now } from "../state/clock";
import { useWidth } from "./box-size";
import { Swatch } from "./swatch";

interface Props {
  thread: ExplainedThread;
  names: string[];
  open: (call: string) => void;
}

export function CategoryArea({ thread, names, open }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const at = useSignal<number | null>(null);
  const series = thread.series ?? [];
  useEffect(() => {
    const draw = () => canvas.current && drawArea(canvas.current, thread);
    draw();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => dark.removeEventListener("change", draw);
  }, [thread, width.value]);
  const place = Math.min(at.value ?? series.length - 1, series.length - 1);
  const call = series[place];
  if (!call) return null;
  const placeOf = (event: { offsetX: number }) =>
    Math.min(
      series.length - 1,
      Math.max(0, Math.floor((event.offsetX / width.value) * series.length)),
    );
  const move = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -series.length, End: series.length }[
      event.key
    ];
    if (event.key === "Enter") open(call.call);
    if (step === undefined) return;
    event.preventDefault();
    at.value = Math.min(series.length - 1, Math.max(0, place + step));
  };
  return (
    <div class="area">
      <h3>
        At each call{" "}
        <span class="amount">
          {plural(series.length, "call")}
          {cycleStarts(thread).length > 0 &&
            "; a dashed line: a new cycle, after a compaction or clear"}
        </span>
      </h3>
      {/* biome-ignore lint/a11y/useSemanticElements: a chart has no element of its own */}
      <div
        class="area-box"
        ref={box}
        role="group"
        aria-label={`Tokens sent by category, ${plural(series.length, "call")}; arrow keys move between calls, Enter goes to the call`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it is walked with the arrow keys
        tabIndex={0}
        onKeyDown={move}
        onPointerMove={(event) => {
          at.value = placeOf(event);
        }}
        onPointerLeave={() => {
          at.value = null;
        }}
        onClick={(event) => {
          const clicked = series[placeOf(event)];
          if (clicked) open(clicked.call);
        }}
        data-testid="area"
      >
        <canvas ref={canvas} />
        {at.value !== null && (
          <span
            class="area-cursor"
            style={{ "--at": `${(100 * (place + 0.5)) / series.length}%` }}
            aria-hidden="true"
          />
        )}
      </div>
      <CallCategories call={call} number={place + 1} names={names} last={at.value === null} />
    </div>
  );
}

interface CallProps {
  call: ExplainedCall;
  number: number;
  names: string[];
  last: boolean;
}

function CallCategories({ call, number, names, last }: CallProps) {
  const parts = names.map((name, place) => {
    return { name, colour: colourOf(place), tokens: call.categories[place] ?? 0 };
  });
  parts.push({ name: UNEXPLAINED, colour: 0, tokens: call.unexplained });
  return (
    <div class="area-call" data-testid="area-call" data-call={call.call} aria-live="polite">
      <p>
        <b>{last ? "last call" : `call ${count(number)}`}</b> {moment(call.at, now.peek())} ·{" "}
        <b>{count(call.sent)}</b> sent
        {call.tools.length > 0 && ` · ran ${toolsText(call.tools)}`}
      </p>
      <ul>
        {parts
          .filter((part) => part.tokens !== 0)
          .map((part) => (
            <li key={part.name}>
              <Swatch colour={part.colour} /> {part.name} <b>{tokens(part.tokens)}</b>
            </li>
          ))}
      </ul>
    </div>
  );
}
