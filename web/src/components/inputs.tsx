/** A select and a checkbox, each with a label. */

import { useId } from "preact/hooks";

interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  of: Record<T, string>;
  set: (to: T) => void;
  testid?: string;
  /** Show the label to screen readers only: the options explain themselves. */
  quiet?: boolean;
}

export function Select<T extends string>({ label, value, of, set, testid, quiet }: ChoiceProps<T>) {
  const id = useId();
  return (
    <span class="choice">
      <label for={id} class={quiet ? "unseen" : undefined}>
        {label}
      </label>
      <select
        id={id}
        value={value}
        data-testid={testid}
        onChange={(event) => set(event.currentTarget.value as T)}
      >
        {(Object.entries(of) as [T, string][]).map(([key, words]) => (
          <option key={key} value={key}>
            {words}
          </option>
        ))}
      </select>
    </span>
  );
}

interface SwitchProps {
  label: string;
  on: boolean;
  set: (on: boolean) => void;
  title?: string;
  testid?: string;
}

export function Checkbox({ label, on, set, title, testid }: SwitchProps) {
  return (
    <label class="switch" title={title}>
      <input
        type="checkbox"
        checked={on}
        data-testid={testid}
        onChange={(event) => set(event.currentTarget.checked)}
      />
      {label}
    </label>
  );
}
