/** The small line below the headline of a session: folder, branch, agent, model, and whose it is. */

import type { SessionRow } from "../api-types";
import { hasSeveralHosts } from "../app";
import { modelName } from "../format";
import { folder } from "../reading";

interface Props {
  session: SessionRow;
  branch?: string | null;
}

export function AboutLine({ session, branch = null }: Props) {
  const { agent, host, is_fork, model, project, team, title, user } = session;
  const place = title && folder(project); // else it is the headline
  const parts = [
    is_fork && "fork",
    branch,
    agent,
    model === null ? "model unknown" : modelName(model),
    user,
    team,
    hasSeveralHosts.value && host,
  ];
  return (
    <p class="about" title={project ?? undefined} data-testid="about">
      {place && <span class="about-place">{place}</span>}
      <span>
        {place && " · "}
        {parts.filter(Boolean).join(" · ")}
      </span>
    </p>
  );
}
