/** The timeline with its switches, and the exact figures of the call that is pointed at. */

import { type Signal, useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { Formulas } from "../api";
import type { SessionView, Timeline } from "../api-types";
import { plural } from "../format";
import { mainOf } from "../reading";
import type { Detail } from "../state/detail";
import type { Chart, Drawing } from "../timeline/chart";
import { FORMULA_WORDS, linesOf, saidAt } from "../timeline/lines";
import { marksNear, marksOf } from "../timeline/marks";
import { type Axis, callAt, callPlace, plotOf } from "../timeline/plot";
import { Canvas, type Pointer } from "./canvas";
import { Figures } from "./figures";
import { Choice, Switch } from "./inputs";
import { Legend } from "./legend";

interface Props {
  view: SessionView;
  detail: Detail;
}

/** How somebody wants the timeline to be drawn. */
interface Choices {
  axis: Signal<Axis>;
  scale: Signal<"window" | "data">;
  formulas: Signal<string[]>;
}

export function TimelinePanel({ view, detail }: Props) {
  const timeline = detail.timeline.value;
  return (
    <section class="panel" aria-labelledby="timeline">
      <h2 id="timeline">Timeline</h2>
      {timeline === null && (
        <p class="quiet">{detail.error.value?.message ?? "Asking the daemon ..."}</p>
      )}
      {timeline?.calls.length === 0 && <p class="quiet">No call was made yet.</p>}
      {timeline && timeline.calls.length > 0 && (
        <Drawn view={view} detail={detail} timeline={timeline} />
      )}
    </section>
  );
}

function Drawn({ view, detail, timeline }: Props & { timeline: Timeline }) {
  const choices: Choices = {
    axis: useSignal<Axis>("calls"),
    scale: useSignal<"window" | "data">("window"),
    formulas: useSignal<string[]>([]),
  };
  const pointer: Pointer = {
    at: useSignal<number | null>(null),
    zoomed: useSignal(false),
    chart: useRef<Chart | null>(null),
  };
  const drawing = useDrawing(view, timeline, choices, detail.formulas.value);
  const { plot, marks, lines } = drawing;
  const at = pointer.at.value ?? plot.x.length - 1;
  const call = callAt(plot, at);
  const thread = view.threads.find((one) => one.thread === call?.thread);
  return (
    <>
      <Tools choices={choices} pointer={pointer} />
      {/* biome-ignore lint/a11y/useSemanticElements: a chart has no element of its own */}
      <div
        class="chart"
        role="group"
        aria-label={`Tokens sent, ${plural(timeline.calls.length, "call")}; arrow keys walk from call to call`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it is walked with the arrow keys
        tabIndex={0}
        onKeyDown={(event) => walk(event, pointer, plot.x.length)}
        data-testid="chart"
      >
        <Canvas drawing={drawing} pointer={pointer} />
      </div>
      <Figures
        call={call}
        source={thread?.source ?? "unknown"}
        formulas={saidAt(lines, callPlace(plot, at))}
        near={marksNear(marks, plot.x, at)}
        last={pointer.at.value === null}
      />
      <Legend lines={lines} marks={marks} />
      <FormulaSwitches shown={choices.formulas} detail={detail} />
    </>
  );
}

/** What is drawn; the same value as long as nothing of it changed, so that pointing draws nothing. */
function useDrawing(
  view: SessionView,
  timeline: Timeline,
  { axis, scale, formulas }: Choices,
  historic: Formulas | null,
): Drawing {
  const main = mainOf(view);
  const plot = useMemo(() => plotOf(timeline.calls, axis.value), [timeline, axis.value]);
  const marks = useMemo(() => marksOf(timeline, plot), [timeline, plot]);
  const [window, limit, levels] = [main?.window ?? null, main?.limit ?? null, view.levels.join()];
  return useMemo(() => {
    const lines = linesOf(plot, formulas.value, historic);
    const whole = scale.value === "window";
    return { plot, lines, marks, window, limit, levels: view.levels, whole };
  }, [plot, marks, window, limit, levels, scale.value, formulas.value, historic]);
}

/** The arrow keys go from call to call. */
function walk(event: KeyboardEvent, pointer: Pointer, places: number): void {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const at = Math.min(places - 1, Math.max(0, (pointer.at.value ?? places - 1) + step));
  pointer.chart.current?.point(at);
  pointer.at.value = at;
}

function Tools({ choices, pointer }: { choices: Choices; pointer: Pointer }) {
  const { axis, scale } = choices;
  const { zoomed, chart } = pointer;
  const over = (to: Axis) => {
    axis.value = to;
    pointer.at.value = null;
  };
  return (
    <div class="tools">
      <Choice
        label="over"
        value={axis.value}
        of={{ calls: "calls", time: "time" }}
        set={over}
        testid="axis"
      />
      <Choice
        label="scale"
        value={scale.value}
        of={{ window: "whole window", data: "what was sent" }}
        set={(to) => {
          scale.value = to;
        }}
        testid="scale"
      />
      <span class="buttons">
        <button type="button" onClick={() => chart.current?.zoom(0.5)} data-testid="zoom-in">
          Zoom in
        </button>
        <button type="button" onClick={() => chart.current?.zoom(2)} disabled={!zoomed.value}>
          Zoom out
        </button>
        <button
          type="button"
          onClick={() => chart.current?.reset()}
          disabled={!zoomed.value}
          data-testid="zoom-reset"
        >
          All
        </button>
      </span>
    </div>
  );
}

function FormulaSwitches({ shown, detail }: { shown: Signal<string[]>; detail: Detail }) {
  const turn = (name: string, on: boolean) => {
    shown.value = on ? [...shown.value, name] : shown.value.filter((one) => one !== name);
    detail.showFormulas();
  };
  return (
    <fieldset class="formulas" data-testid="formulas">
      <legend>What the historic formulas would have said</legend>
      {Object.entries(FORMULA_WORDS).map(([name, words]) => (
        <Switch
          key={name}
          label={name}
          title={words}
          on={shown.value.includes(name)}
          set={(on) => turn(name, on)}
        />
      ))}
    </fieldset>
  );
}
