/** The trend of the current cycle as a small line with its last point, below the limit. */

const WIDTH = 96;
const HEIGHT = 24;
const PAD = 3;

/** The points of an SVG polyline: 0 is at the bottom, `top` at the top. */
export function points(values: number[], top: number, width = WIDTH, height = HEIGHT): string {
  const step = values.length > 1 ? (width - 2 * PAD) / (values.length - 1) : 0;
  const size = top > 0 ? (height - 2 * PAD) / top : 0;
  return values
    .map((value, at) => `${round(PAD + at * step)},${round(height - PAD - value * size)}`)
    .join(" ");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

interface Props {
  trend: number[];
  /** The tokens at which the client compacts, drawn as a line if they are known. */
  limit: number | null;
}

export function Sparkline({ trend, limit }: Props) {
  const top = Math.max(0, limit ?? 0, ...trend);
  const line = points(trend, top);
  const [x, y] = line.slice(line.lastIndexOf(" ") + 1).split(",");
  const limitY = limit === null ? null : points([limit], top).split(",")[1];
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true" data-testid="spark">
      <line class="spark-foot" x1={PAD} x2={WIDTH - PAD} y1={HEIGHT - PAD} y2={HEIGHT - PAD} />
      {limitY !== null && (
        <line class="spark-limit" x1={PAD} x2={WIDTH - PAD} y1={limitY} y2={limitY} />
      )}
      {trend.length > 1 && <polyline points={line} />}
      {trend.length > 0 && <circle cx={x} cy={y} r="2" />}
    </svg>
  );
}
