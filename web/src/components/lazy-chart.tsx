/** The timeline's chart; its code is loaded when the first one is shown. */

import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Chart, ChartData } from "../timeline/chart";

type ChartModule = typeof import("../timeline/chart");

export interface Pointer {
  /** The index of the point under the cursor, if any. */
  at: Signal<number | null>;
  zoomed: Signal<boolean>;
  chart: { current: Chart | null };
}

export function LazyChart({ drawing, pointer }: { drawing: ChartData; pointer: Pointer }) {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(drawing);
  const failed = useSignal(false);
  latest.current = drawing;
  useEffect(() => {
    const gone = new AbortController();
    const begin = ({ Chart }: ChartModule) => {
      if (gone.signal.aborted || !box.current) return;
      pointer.chart.current = createChart(Chart, box.current, pointer, gone.signal);
      pointer.chart.current.show(latest.current);
    };
    import("../timeline/chart").then(begin, () => {
      failed.value = true;
    });
    return () => gone.abort();
  }, []);
  useEffect(() => pointer.chart.current?.show(drawing), [drawing]);
  return (
    <div class="chart-box" ref={box}>
      {failed.value && <LoadFailed />}
    </div>
  );
}

/** The daemon stopped or was updated; a reload gets matching code. */
function LoadFailed() {
  return (
    <p role="alert">
      The timeline could not be loaded.{" "}
      <button type="button" onClick={() => location.reload()}>
        Reload the page
      </button>
    </p>
  );
}

function createChart(
  Kind: typeof Chart,
  box: HTMLElement,
  pointer: Pointer,
  signal: AbortSignal,
): Chart {
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
