/** Links to the API's JSON of a session, and its last view. */

import { sessionPath } from "../api";
import type { SessionView } from "../api-types";

const PARTS = ["", "timeline", "formulas", "messages", "handoff"];

export function JsonPanel({ view }: { view: SessionView }) {
  return (
    <section class="panel" aria-labelledby="json">
      <h2 id="json">JSON</h2>
      <ul class="links">
        {PARTS.map((part) => (
          <li key={part}>
            <a href={sessionPath(view.session.id, part)} target="_blank" rel="noreferrer">
              {part || "session"}
            </a>
          </li>
        ))}
      </ul>
      <details>
        <summary>This session as last received</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
        <pre tabIndex={0} data-testid="json">
          {JSON.stringify(view, null, 2)}
        </pre>
      </details>
    </section>
  );
}
