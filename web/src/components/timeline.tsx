/** The timeline with its controls, and the figures of the selected call. */

import { type Signal, useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { Formulas } from "../api";
import type { SessionView, Timeline } from "../api-types";
import { plural } from "../format";
import { mainThread } from "../reading";
import type { SessionDetail } from "../state/session-detail";
import type { Chart, ChartData } from "../timeline/chart";
import { FORMULA_TEXTS, formulaValuesAt, linesOf } from "../timeline/lines";
import { marksNear, marksOf } from "../timeline/marks";
import { type Axis, callAt, nearestCallIndex, plotOf } from "../timeline/plot";
import { CallFigures } from "./call-figures";
import { Checkbox, Select } from "./inputs";
import { LazyChart, type Pointer } from "./lazy-chart";
import { Legend } from "./legend";

interface Props {
  view: SessionView;
  detail: SessionDetail;
}

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
      {timeline === null && <p class="quiet">{detail.error.value?.message ?? "Loading ..."}</p>}
      {timeline?.calls.length === 0 && <p class="quiet">No calls yet.</p>}
      {timeline && timeline.calls.length > 0 && (
        <TimelineChart view={view} detail={detail} timeline={timeline} />
      )}
    </section>
  );
}

function TimelineChart({ view, detail, timeline }: Props & { timeline: Timeline }) {
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
      <ChartTools choices={choices} pointer={pointer} />
      {/* biome-ignore lint/a11y/useSemanticElements: a chart has no element of its own */}
      <div
        class="chart"
        role="group"
        aria-label={`Tokens sent, ${plural(timeline.calls.length, "call")}; use the arrow keys to move between calls`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it is walked with the arrow keys
        tabIndex={0}
        onKeyDown={(event) => moveToCall(event, pointer, plot.x.length)}
        data-testid="chart"
      >
        <LazyChart drawing={drawing} pointer={pointer} />
      </div>
      <CallFigures
        call={call}
        source={thread?.source ?? "unknown"}
        formulas={formulaValuesAt(lines, nearestCallIndex(plot, at))}
        near={marksNear(marks, plot.x, at)}
        last={pointer.at.value === null}
      />
      <Legend lines={lines} marks={marks} />
      <FormulaSwitches shown={choices.formulas} detail={detail} />
    </>
  );
}

/** The chart's data; the same object until it changes, so that hovering does not redraw. */
function useDrawing(
  view: SessionView,
  timeline: Timeline,
  { axis, scale, formulas }: Choices,
  historic: Formulas | null,
): ChartData {
  const main = mainThread(view);
  const plot = useMemo(() => plotOf(timeline.calls, axis.value), [timeline, axis.value]);
  const marks = useMemo(() => marksOf(timeline, plot), [timeline, plot]);
  const [window, limit, levels] = [main?.window ?? null, main?.limit ?? null, view.levels.join()];
  return useMemo(() => {
    const lines = linesOf(plot, formulas.value, historic);
    const whole = scale.value === "window";
    return { plot, lines, marks, window, limit, levels: view.levels, whole };
  }, [plot, marks, window, limit, levels, scale.value, formulas.value, historic]);
}

function moveToCall(event: KeyboardEvent, pointer: Pointer, places: number): void {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const at = Math.min(places - 1, Math.max(0, (pointer.at.value ?? places - 1) + step));
  pointer.chart.current?.moveCursor(at);
  pointer.at.value = at;
}

function ChartTools({ choices, pointer }: { choices: Choices; pointer: Pointer }) {
  const { axis, scale } = choices;
  const { zoomed, chart } = pointer;
  const over = (to: Axis) => {
    axis.value = to;
    pointer.at.value = null;
  };
  return (
    <div class="tools">
      <Select
        label="x axis"
        value={axis.value}
        of={{ calls: "calls", time: "time" }}
        set={over}
        testid="axis"
      />
      <Select
        label="scale"
        value={scale.value}
        of={{ window: "whole window", data: "tokens sent" }}
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

function FormulaSwitches({ shown, detail }: { shown: Signal<string[]>; detail: SessionDetail }) {
  const turn = (name: string, on: boolean) => {
    shown.value = on ? [...shown.value, name] : shown.value.filter((one) => one !== name);
    detail.showFormulas();
  };
  return (
    <details class="audit" data-testid="formulas">
      <summary>Audit: compare with historic formulas</summary>
      <fieldset class="formulas">
        <legend class="unseen">Historic formulas</legend>
        {Object.entries(FORMULA_TEXTS).map(([name, words]) => (
          <Checkbox
            key={name}
            label={name}
            title={words}
            on={shown.value.includes(name)}
            set={(on) => turn(name, on)}
          />
        ))}
      </fieldset>
    </details>
  );
}
