/** A column chart with one column per day; the table below has the figures. */

interface Props {
  title: string;
  values: { key: string; value: number | null; words: string }[];
  /** The text beside the title: the largest value. */
  most: string;
}

const WIDTH = 300;
const HEIGHT = 64;
const MAX_COLUMN_WIDTH = 24;
/** So many columns have a label each; of more, the first and the last. */
const MAX_LABELS = 4;

/** The heights of the columns: the largest value is as tall as the box, unknown is 0. */
export function heights(values: (number | null)[], box: number): number[] {
  const top = Math.max(0, ...values.map((value) => value ?? 0));
  return values.map((value) => (top > 0 && value !== null ? (value / top) * box : 0));
}

export function ColumnChart({ title, values, most }: Props) {
  const step = WIDTH / Math.max(1, values.length);
  const wide = Math.min(step * 0.76, MAX_COLUMN_WIDTH);
  const tall = heights(
    values.map(({ value }) => value),
    HEIGHT - 2,
  );
  const keys = values.map(({ key }) => key);
  const hasAllLabels = keys.length <= MAX_LABELS;
  return (
    <figure class="columns">
      <figcaption>
        <b>{title}</b> <span>{most}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {values.map(({ key, words }, at) => (
          <rect
            key={key}
            x={at * step + (step - wide) / 2}
            width={wide}
            y={HEIGHT - (tall[at] ?? 0)}
            height={tall[at] ?? 0}
          >
            <title>{words}</title>
          </rect>
        ))}
        <path class="columns-foot" d={`M0 ${HEIGHT}H${WIDTH}`} />
      </svg>
      <p class="columns-labels" data-all={hasAllLabels || undefined} aria-hidden="true">
        {(hasAllLabels ? keys : [keys[0], keys.at(-1)]).map((key) => (
          <span key={key}>{key}</span>
        ))}
      </p>
    </figure>
  );
}
