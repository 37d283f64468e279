/** The timeline's drawing; its code is fetched when the first one is shown. */

import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Chart, Drawing } from "../timeline/chart";

export interface Pointer {
  /** The place that is pointed at, if any is. */
  at: Signal<number | null>;
  zoomed: Signal<boolean>;
  chart: { current: Chart | null };
}

export function Canvas({ drawing, pointer }: { drawing: Drawing; pointer: Pointer }) {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(drawing);
  latest.current = drawing;
  useEffect(() => {
    const gone = new AbortController();
    void import("../timeline/chart").then(({ Chart }) => {
      if (gone.signal.aborted || !box.current) return;
      pointer.chart.current = made(Chart, box.current, pointer, gone.signal);
      pointer.chart.current.show(latest.current);
    });
    return () => gone.abort();
  }, []);
  useEffect(() => pointer.chart.current?.show(drawing), [drawing]);
  return <div class="chart-box" ref={box} />;
}

function made(Kind: typeof Chart, box: HTMLElement, pointer: Pointer, signal: AbortSignal): Chart {
  const chart = new Kind(
    box,
    (at) => {
      pointer.at.value = at;
    },
    (zoomed) => {
      pointer.zoomed.value = zoomed;
    },
  );
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => chart.restyle(), { signal });
  signal.addEventListener("abort", () => {
    chart.destroy();
    pointer.chart.current = null;
  });
  return chart;
}
