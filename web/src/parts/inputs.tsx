/** A choice and a switch, each with its label. */

import { useId } from "preact/hooks";

interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  of: Record<T, string>;
  set: (to: T) => void;
  testid?: string;
  /** Where the choices say themselves what they are of, the label is for those who do not see. */
  quiet?: boolean;
}

export function Choice<T extends string>({ label, value, of, set, testid, quiet }: ChoiceProps<T>) {
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

export function Switch({ label, on, set, title, testid }: SwitchProps) {
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
