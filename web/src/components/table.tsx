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
    // biome-ignore lint/a11y/useSemanticElements: a region of its panel's name would be there twice
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <div class="table" role="group" aria-label={label} tabIndex={0}>
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
    </div>
  );
}
