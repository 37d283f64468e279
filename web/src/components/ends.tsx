/** What stops a session if it goes on, the nearest first, below what to do about it. */

import type { SessionView } from "../api-types";
import { endText } from "../reading";
import { now } from "../state/clock";
import { NeedText } from "./need-text";

export function Ends({ view }: { view: SessionView }) {
  return (
    <div data-testid="next">
      <NeedText need={view.need} />
      {view.ends.length > 0 && (
        <ol class="ends" aria-label="What stops it first">
          {view.ends.map((end) => (
            <li key={end.kind} data-end={end.kind} data-urgent={end.is_urgent || undefined}>
              <span class="end-kind">{end.kind}</span> {endText(end, now.value)}
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}
