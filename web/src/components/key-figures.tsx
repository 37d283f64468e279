/** A row of large figures, each with its name above it. */

export type KeyFigure = [name: string, value: string, title?: string];

interface Props {
  figures: KeyFigure[];
  label?: string;
  testid: string;
}

export function KeyFigures({ figures, label, testid }: Props) {
  return (
    <dl class="key-figures" aria-label={label} data-testid={testid}>
      {figures.map(([name, value, title]) => (
        <div key={name} title={title}>
          <dt>{name}</dt>
          <dd data-figure={name}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
