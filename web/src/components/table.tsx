/** A table that scrolls sideways if it is wider than the page. */

import type { ComponentChildren } from "preact";

export interface Column {
  name: string;
  /** Aligned right. */
  figure?: boolean;
}

interface Props {
  label: string;
  columns: Column[];
  children: ComponentChildren;
  testid?: string;
}

export function Table({ label, columns, children, testid }: Props) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class="table" aria-label={label} tabIndex={0}>
      <table data-testid={testid}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={column.figure ? "figure" : undefined}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}
