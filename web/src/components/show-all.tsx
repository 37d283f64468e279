/** The button below the first findings of a long list. */

/** Of waste, of cache misses: so many are shown first. */
export const MAX_FINDINGS = 6;

interface Props {
  all: { value: boolean };
  isLonger: boolean;
}

export function ShowAll({ all, isLonger }: Props) {
  if (all.value || !isLonger) return null;
  return (
    <button
      type="button"
      class="more"
      onClick={() => {
        all.value = true;
      }}
    >
      Show all
    </button>
  );
}
