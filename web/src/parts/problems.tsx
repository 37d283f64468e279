/** What happened to the store: shown above every view until the user has dealt with it. */

import { live } from "../app";
import { ago } from "../format";
import { now } from "../state/clock";

/** `brimline doctor` lists all of them. */
const MOST_SHOWN = 3;

export function StoreProblems() {
  const problems = (live.daemon.value?.problems ?? []).slice(-MOST_SHOWN);
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
