/** The curve of a session's calls with its controls, and the figures of the selected call. */

import { type Signal, useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { Formulas } from "../api";
import type { ExplainedThread, SessionView, ThreadMiss, Timeline } from "../api-types";
import { isFleet } from "../app";
import { columnsOf } from "../explanation/bands";
import { count, plural } from "../format";
import { mainThread } from "../reading";
import type { SessionDetail, SessionPart } from "../state/session-detail";
import type { Chart, ChartData } from "../timeline/chart";
import { FORMULA_TEXTS, formulaValuesAt, linesOf } from "../timeline/lines";
import { marksNear, marksOf } from "../timeline/marks";
import {
  type Axis,
  callAt,
  currentCycle,
  nearestCallIndex,
  type Plot,
  plotOf,
} from "../timeline/plot";
import { MissList } from "./cache-misses";
import { CallFigures } from "./call-figures";
import { Checkbox, Select } from "./inputs";
import { LazyChart, type Pointer } from "./lazy-chart";
import { Legend } from "./legend";
import { Panel } from "./panel";

interface Choices {
  axis: Signal<Axis>;
  scale: Signal<"window" | "data">;
  formulas: Signal<string[]>;
  categories: Signal<boolean>;
}

export function TimelinePanel({ view, detail }: SessionPart) {
  const timeline = detail.timeline.value;
  const choices: Choices = {
    axis: useSignal<Axis>("calls"),
    scale: useSignal<"window" | "data">("window"),
    formulas: useSignal<string[]>([]),
    categories: useSignal(false),
  };
  const pointer: Pointer = {
    at: useSignal<number | null>(null),
    zoomed: useSignal(false),
    chart: useRef<Chart | null>(null),
  };
  const calls = timeline?.calls ?? [];
  const plot = useMemo(() => plotOf(calls, choices.axis.value), [timeline, choices.axis.value]);
  return (
    <Panel
      id="timeline"
      title="Timeline"
      wide={isFleet.value}
      amount={timeline ? plural(calls.length, "call") : undefined}
      tools={calls.length > 0 && <ChartTools {...{ plot, choices, pointer, detail }} />}
    >
      {timeline === null && <p class="quiet">{detail.error.value?.message ?? "Loading ..."}</p>}
      {timeline && calls.length === 0 && <p class="quiet">No calls yet.</p>}
      {timeline && calls.length > 0 && (
        <TimelineChart {...{ view, detail, timeline, plot, choices, pointer }} />
      )}
      <CacheMisses detail={detail} />
    </Panel>
  );
}

/** Those of the explained thread, else, without a transcript, what the timeline has. */
function CacheMisses({ detail }: { detail: SessionDetail }) {
  const explained = detail.explainedThread.value;
  const misses: ThreadMiss[] = explained
    ? explained.misses.map((miss) => ({ ...miss, thread: explained.thread }))
    : (detail.timeline.value?.misses ?? []);
  if (misses.length === 0) return null;
  return (
    <details class="finding-list">
      <summary>Cache misses {count(misses.length)}</summary>
      <MissList misses={misses} open={(...call) => detail.selectCall(...call)} />
    </details>
  );
}

interface ChartProps extends SessionPart {
  timeline: Timeline;
  plot: Plot;
  choices: Choices;
  pointer: Pointer;
}

function TimelineChart({ view, detail, timeline, plot, choices, pointer }: ChartProps) {
  const explained = choices.categories.value ? detail.explainedThread.value : null;
  const drawing = useDrawing(view, timeline, plot, choices, detail.formulas.value, explained);
  const { marks, lines } = drawing;
  const at = pointer.at.value ?? plot.x.length - 1;
  const call = callAt(plot, at);
  const thread = view.threads.find((one) => one.thread === call?.thread);
  const parts = explained?.series?.find((one) => one.call === call?.call) ?? null;
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a chart has no element of its own */}
      <div
        class="chart"
        role="group"
        aria-label={`Tokens sent, ${plural(timeline.calls.length, "call")}; arrow keys move between calls, Enter goes to the call`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it is walked with the arrow keys
        tabIndex={0}
        onKeyDown={(event) => {
          if (event.key === "Enter" && call) detail.selectCall(call.thread, call.call);
          else moveToCall(event, pointer, plot.x.length);
        }}
        data-testid="chart"
      >
        <LazyChart drawing={drawing} pointer={pointer} />
      </div>
      <CallFigures
        call={call}
        source={thread?.source ?? "unknown"}
        formulas={formulaValuesAt(lines, nearestCallIndex(plot, at))}
        near={marksNear(marks, plot.x, at)}
        parts={parts}
        names={detail.explanation.value?.category_names ?? []}
        last={pointer.at.value === null}
      />
      <Legend lines={lines} marks={marks} />
      <Options choices={choices} pointer={pointer} detail={detail} />
    </>
  );
}

/** The chart's data; the same object until it changes, so that hovering does not redraw. */
function useDrawing(
  view: SessionView,
  timeline: Timeline,
  plot: Plot,
  { scale, formulas }: Choices,
  historic: Formulas | null,
  explained: ExplainedThread | null,
): ChartData {
  const main = mainThread(view);
  const marks = useMemo(() => marksOf(timeline, plot), [timeline, plot]);
  const bands = useMemo(() => (explained ? columnsOf(explained, plot) : []), [explained, plot]);
  const [window, limit, levels] = [main?.window ?? null, main?.limit ?? null, view.levels.join()];
  return useMemo(() => {
    const lines = linesOf(plot, formulas.value, historic);
    const whole = scale.value === "window";
    return { plot, lines, marks, bands, window, limit, levels: view.levels, whole };
  }, [plot, marks, bands, window, limit, levels, scale.value, formulas.value, historic]);
}

function moveToCall(event: KeyboardEvent, pointer: Pointer, places: number): void {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const at = Math.min(places - 1, Math.max(0, (pointer.at.value ?? places - 1) + step));
  pointer.chart.current?.moveCursor(at);
  pointer.at.value = at;
}

interface ToolsProps {
  plot: Plot;
  choices: Choices;
  pointer: Pointer;
  detail: SessionDetail;
}

function ChartTools({ plot, choices, pointer, detail }: ToolsProps) {
  const { zoomed, chart } = pointer;
  const cycle = currentCycle(plot);
  const isPart = cycle !== null && cycle[0] > (plot.x[0] ?? 0);
  return (
    <div class="tools">
      {detail.explainedThread.value && (
        <Checkbox
          label="categories"
          title="what each call sent, by category"
          on={choices.categories.value}
          set={(on) => {
            choices.categories.value = on;
          }}
          testid="bands"
        />
      )}
      <span class="buttons">
        {isPart && (
          <button type="button" onClick={() => chart.current?.zoomTo(...cycle)} data-testid="cycle">
            This cycle
          </button>
        )}
        <button type="button" onClick={() => chart.current?.zoom(0.5)} data-testid="zoom-in">
          Zoom in
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

/** What few need: the axes, and the lines of other tools' formulas. */
function Options({ choices, pointer, detail }: Omit<ToolsProps, "plot">) {
  const { axis, scale, formulas } = choices;
  const turn = (name: string, on: boolean) => {
    formulas.value = on ? [...formulas.value, name] : formulas.value.filter((one) => one !== name);
    detail.showFormulas();
  };
  return (
    <details class="finding-list" data-testid="chart-options">
      <summary>Axes and historic formulas</summary>
      <div class="tools">
        <Select
          label="x axis"
          value={axis.value}
          of={{ calls: "calls", time: "time" }}
          set={(to) => {
            axis.value = to;
            pointer.at.value = null;
          }}
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
      </div>
      <fieldset class="formulas" data-testid="formulas">
        <legend class="unseen">Historic formulas</legend>
        {Object.entries(FORMULA_TEXTS).map(([name, words]) => (
          <Checkbox
            key={name}
            label={name}
            title={words}
            on={formulas.value.includes(name)}
            set={(on) => turn(name, on)}
          />
        ))}
      </fieldset>
    </details>
  );
}
