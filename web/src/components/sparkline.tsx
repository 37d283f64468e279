/** The trend of the current cycle as a small line with its last point. */

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

export function Sparkline({ trend }: { trend: number[] }) {
  const line = points(trend, Math.max(0, ...trend));
  const [x, y] = line.slice(line.lastIndexOf(" ") + 1).split(",");
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true" data-testid="spark">
      <line class="spark-foot" x1={PAD} x2={WIDTH - PAD} y1={HEIGHT - PAD} y2={HEIGHT - PAD} />
      {trend.length > 1 && <polyline points={line} />}
      {trend.length > 0 && <circle cx={x} cy={y} r="2" />}
    </svg>
  );
}
