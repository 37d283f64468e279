/** Usage by day, week or month as columns with axes, and the figures of one of them. */

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { type Column, type Figure, labelled, periodName, ticksOf } from "../history/columns";
import { useWidth } from "./box-size";
import { Swatch } from "./swatch";

const LABEL_WIDTH_PX = 74;

interface Props {
  columns: Column[];
  figure: Figure;
  /** The name of a part, as it is shown. */
  nameOf: (key: string) => string;
}

export function UsageChart({ columns, figure, nameOf }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const at = useSignal<number | null>(null);
  const last = columns.length - 1;
  const place = Math.min(at.value ?? last, last);
  const shown = columns[place];
  const highest = Math.max(0, ...columns.map(({ value }) => value ?? 0));
  const ticks = ticksOf(highest, figure.step);
  const top = ticks.at(-1) || 1;
  const move = (event: KeyboardEvent) => {
    const to = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    at.value = Math.min(last, Math.max(0, to));
  };
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a chart has no element of its own */}
      <div
        class="usage"
        role="group"
        aria-label={`${figure.title} of ${columns.length} periods; arrow keys move between them`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it is walked with the arrow keys
        tabIndex={0}
        onKeyDown={move}
        data-testid="usage"
      >
        <div class="usage-ticks" aria-hidden="true">
          {ticks.map((tick) => (
            <span key={tick} style={{ "--at": `${(100 * tick) / top}%` }}>
              {figure.words(tick)}
            </span>
          ))}
        </div>
        <div
          class="usage-columns"
          ref={box}
          onPointerLeave={() => {
            at.value = null;
          }}
        >
          {ticks.slice(1).map((tick) => (
            <span key={tick} class="usage-line" style={{ "--at": `${(100 * tick) / top}%` }} />
          ))}
          {columns.map((column, number) => (
            <div
              key={column.key}
              class="usage-column"
              data-key={column.key}
              data-current={number === at.value || undefined}
              onPointerEnter={() => {
                at.value = number;
              }}
            >
              {column.segments.toReversed().map(({ name, colour, value }) => (
                <i
                  key={`${colour} ${name}`}
                  data-fill={colour}
                  style={{ height: `${(100 * value) / top}%` }}
                />
              ))}
            </div>
          ))}
        </div>
        <div class="usage-labels" aria-hidden="true">
          {labelled(columns.length, width.value / LABEL_WIDTH_PX).map((number) => (
            <span
              key={number}
              data-at={number}
              style={{ "--at": `${(100 * (number + 0.5)) / columns.length}%` }}
            >
              {periodName(columns[number]?.key ?? "")}
            </span>
          ))}
        </div>
      </div>
      {shown && <ColumnFigures column={shown} figure={figure} nameOf={nameOf} />}
    </>
  );
}

function ColumnFigures({ column, figure, nameOf }: Omit<Props, "columns"> & { column: Column }) {
  return (
    <div class="usage-figures" data-testid="usage-figures" data-key={column.key} aria-live="polite">
      <p>
        <b>{periodName(column.key)}</b> {figure.title} <b>{figure.words(column.value)}</b>
      </p>
      {figure.ofPart && (
        <ul>
          {column.segments.map(({ name, colour, value }) => (
            <li key={`${colour} ${name}`}>
              <Swatch colour={colour} /> {colour ? nameOf(name) : name} <b>{figure.words(value)}</b>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
