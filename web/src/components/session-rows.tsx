/** The rows of the overview; only those near the visible part are drawn. */

import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";
import { visibleRows } from "../state/visible-rows";
import { OverviewRow } from "./overview-row";

/** Rows this far outside the visible part are drawn too, for scrolling and the keyboard. */
const MARGIN_PX = 800;
/** The height of a row before any row was measured. */
const ESTIMATE_PX = 44;
/** The gap between two groups. */
const GAP_PX = 8;

/** The measured heights of rows by session; another width has other heights. */
const measured = new Map<string, number>();
let measuredWidth = 0;

/** The heights of rows, with the gaps above them. */
function heightsOf(ids: string[], gaps: string[]): number[] {
  const known = [...measured.values()];
  const sum = known.reduce((total, height) => total + height, 0);
  const estimate = known.length > 0 ? sum / known.length : ESTIMATE_PX;
  return ids.map((id) => (measured.get(id) ?? estimate) + (gaps.includes(id) ? GAP_PX : 0));
}

/** Note the heights of the drawn rows; returns whether one is new or has changed. */
function measure(list: HTMLOListElement): boolean {
  if (list.clientWidth !== measuredWidth) measured.clear();
  measuredWidth = list.clientWidth;
  let changed = false;
  for (const row of list.querySelectorAll<HTMLElement>(".row")) {
    const id = row.dataset.session ?? "";
    const height = row.getBoundingClientRect().height;
    changed ||= measured.get(id) !== height;
    measured.set(id, height);
  }
  return changed;
}

interface Props {
  ids: string[];
  /** Those with a gap above them. */
  gaps?: string[];
}

export function SessionRows({ ids, gaps = [] }: Props) {
  const list = useRef<HTMLOListElement>(null);
  const [, redraw] = useReducer((times: number) => times + 1, 0);
  useEffect(() => {
    let waits = false;
    const later = () => {
      if (waits) return;
      waits = true;
      requestAnimationFrame(() => {
        waits = false;
        redraw(undefined);
      });
    };
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
    return () => {
      removeEventListener("scroll", later);
      removeEventListener("resize", later);
    };
  }, []);
  useLayoutEffect(() => {
    if (list.current && measure(list.current)) redraw(undefined);
  });
  const top = list.current ? -list.current.getBoundingClientRect().top : 0;
  const shown = visibleRows(heightsOf(ids, gaps), top - MARGIN_PX, top + innerHeight + MARGIN_PX);
  return (
    <ol
      ref={list}
      class="rows"
      aria-label="Sessions"
      data-testid="sessions"
      style={{ paddingTop: `${shown.before}px`, paddingBottom: `${shown.after}px` }}
    >
      {ids.slice(shown.first, shown.end).map((id, at) => (
        <OverviewRow
          key={id}
          id={id}
          place={shown.first + at + 1}
          of={ids.length}
          gap={gaps.includes(id) ? GAP_PX : 0}
        />
      ))}
    </ol>
  );
}

/** Scroll to the row of a session, so that it is drawn. */
export function scrollToRow({ ids, gaps = [] }: Props, id: string): void {
  const at = ids.indexOf(id);
  const list = document.querySelector(".rows");
  if (at < 0 || !list) return;
  const above = heightsOf(ids.slice(0, at), gaps).reduce((sum, height) => sum + height, 0);
  const start = scrollY + list.getBoundingClientRect().top;
  scrollTo({ top: Math.max(0, start + above - innerHeight / 2) });
}
