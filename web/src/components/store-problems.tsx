/** Problems of the store's file, shown above every view until they are resolved. */

import { eventSource } from "../app";
import { ago } from "../format";
import { now } from "../state/clock";

/** `brimline doctor` lists all of them. */
const MAX_SHOWN = 3;

export function StoreProblems() {
  const problems = (eventSource.daemon.value?.problems ?? []).slice(-MAX_SHOWN);
  if (problems.length === 0) return null;
  return (
    <div class="problems" role="alert" data-testid="problems">
      {problems.toReversed().map((problem) => (
        <p key={problem.at}>
          <strong>{problem.what}</strong> {problem.advice}{" "}
          <span class="when">{ago(problem.at, now.value)}</span>
        </p>
      ))}
    </div>
  );
}
