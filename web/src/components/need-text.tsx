/** What a session needs of a person now: the daemon's sentence. */

import type { Need } from "../api-types";

export function NeedText({ need }: { need: Need | null }) {
  if (need === null) return null;
  // A command is between backquotes.
  const parts = need.text.split("`").map((text, at) => (at % 2 ? <code>{text}</code> : text));
  return (
    <p class="need" data-kind={need.kind} data-testid="need">
      {parts}
    </p>
  );
}
