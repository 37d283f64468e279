/** The figures above a daemon's overview: sessions at work, and what today used. */

import { useComputed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { sessionStore } from "../app";
import { count, dollars, isoDay } from "../format";
import { isActive } from "../reading";
import { now } from "../state/clock";
import { useHistory } from "../state/history";

export function Summary() {
  const active = useComputed(() => {
    sessionStore.version.value;
    return sessionStore.views().filter((view) => isActive(view, now.value));
  });
  const amount = useComputed(() => active.value.length);
  const near = useComputed(() => {
    sessionStore.version.value;
    return sessionStore.views().filter((view) => view.is_near_limit).length;
  });
  return (
    <dl class="summary" aria-label="Summary" data-testid="summary">
      <Figure name="active" title="sessions with an event within the last hour">
        {count(amount.value)}
      </Figure>
      <Figure
        name="near the limit"
        title="sessions from the last level on, with a call within 24 hours"
        alert={near.value > 0}
      >
        {count(near.value)}
      </Figure>
      <Today />
    </dl>
  );
}

/** What today cost, from the transcripts on this machine. */
function Today() {
  const { value: history } = useHistory("24h");
  const date = useComputed(() => isoDay(now.value)).value;
  const today = history.value?.days.find((day) => day.day === date);
  return (
    <Figure name="cost today" title="at list prices">
      {history.value ? dollars(today ? today.cost : 0) : "..."}
    </Figure>
  );
}

interface FigureProps {
  name: string;
  title?: string;
  alert?: boolean;
  children: ComponentChildren;
}

function Figure({ name, title, alert = false, children }: FigureProps) {
  return (
    <div class="summary-figure" title={title} data-alert={alert ? "" : undefined}>
      <dt>{name}</dt>
      <dd data-figure={name}>{children}</dd>
    </div>
  );
}
