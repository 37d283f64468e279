/** The colour of a category. */

export function Swatch({ colour }: { colour: number }) {
  return <i class="swatch" data-fill={colour} aria-hidden="true" />;
}
