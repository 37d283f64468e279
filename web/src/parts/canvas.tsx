/** The timeline's drawing; its code is fetched when the first one is shown. */

import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Chart, Drawing } from "../timeline/chart";

type Code = typeof import("../timeline/chart");

export interface Pointer {
  /** The place that is pointed at, if any is. */
  at: Signal<number | null>;
  zoomed: Signal<boolean>;
  chart: { current: Chart | null };
}

export function Canvas({ drawing, pointer }: { drawing: Drawing; pointer: Pointer }) {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(drawing);
  const failed = useSignal(false);
  latest.current = drawing;
  useEffect(() => {
    const gone = new AbortController();
    const begin = ({ Chart }: Code) => {
      if (gone.signal.aborted || !box.current) return;
      pointer.chart.current = made(Chart, box.current, pointer, gone.signal);
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
      {failed.value && <NotFetched />}
    </div>
  );
}

/** The daemon went meanwhile, or another version of it came: a new page has what fits it. */
function NotFetched() {
  return (
    <p role="alert">
      The timeline could not be fetched.{" "}
      <button type="button" onClick={() => location.reload()}>
        Load the page anew
      </button>
    </p>
  );
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
