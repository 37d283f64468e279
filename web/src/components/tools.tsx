/** What the sessions of a project carry with every call: MCP servers, memory files, skills. */

import { useSignal } from "@preact/signals";
import type { CarriedPart, ToolReport } from "../api-types";
import { ago, count, dollars, plural, tokens } from "../format";
import { projectNames } from "../reading";
import { now } from "../state/clock";
import { useTools } from "../state/history";
import { Select } from "./inputs";
import { Panel } from "./panel";
import { ShowAll } from "./show-all";
import { type Column, Table } from "./table";

const MAX_ROWS = 10;

const COLUMNS: Column[] = [
  { name: "what" },
  { name: "kind" },
  { name: "agent" },
  { name: "tokens", figure: true },
  { name: "sessions", figure: true },
  { name: "called in", figure: true },
  { name: "calls", figure: true },
  { name: "cost", figure: true },
];

/** A project is read when it is chosen: its transcripts are read whole the first time. */
export function ToolsPanel({ projects }: { projects: string[] }) {
  const project = useSignal("");
  return (
    <Panel
      id="tools"
      title="What every call carries"
      amount="in 30 days"
      testid="tools"
      tools={
        <Select
          label="project"
          value={project.value}
          of={{ "": "choose one", ...projectNames(projects) }}
          set={(to) => {
            project.value = to;
          }}
          testid="tools-project"
        />
      }
    >
      {project.value ? (
        <ProjectTools key={project.value} project={project.value} />
      ) : (
        <p class="quiet">
          The MCP servers, memory files, skills and agents of a project: what they cost, and which
          are not used.
        </p>
      )}
    </Panel>
  );
}

function ProjectTools({ project }: { project: string }) {
  const { value, error } = useTools(project);
  if (error.value) return <p role="alert">{error.value}</p>;
  if (!value.value) return <p class="quiet">Reading the transcripts ...</p>;
  return <Report report={value.value} />;
}

function Report({ report }: { report: ToolReport }) {
  const all = useSignal(false);
  const { parts, project, sessions, answered_at: asked } = report;
  const advice = parts.filter((part) => part.advice !== null);
  if (sessions === 0) {
    return <p class="quiet">No session of this project in the last 30 days.</p>;
  }
  if (parts.length === 0) {
    return <p class="quiet">No transcript names MCP servers, memory files, skills or agents.</p>;
  }
  const shown = all.value ? parts : parts.slice(0, MAX_ROWS);
  const hasAgents = new Set(parts.map(({ agent }) => agent)).size > 1;
  const columns = COLUMNS.filter(({ name }) => hasAgents || name !== "agent");
  return (
    <>
      <Table label="What every call carries" columns={columns} testid="carried">
        {shown.map((part) => (
          <Row
            key={[part.agent, part.kind, part.name].join("\n")}
            part={part}
            project={project}
            hasAgent={hasAgents}
          />
        ))}
      </Table>
      <ShowAll all={all} isLonger={parts.length > MAX_ROWS} />
      {advice.length > 0 && (
        <ul class="findings" data-testid="tools-advice">
          {advice.map((part) => (
            <li key={[part.agent, part.kind, part.name].join("\n")}>{part.advice}</li>
          ))}
        </ul>
      )}
      <p class="quiet">
        {plural(sessions, "session")}.{" "}
        {shown.some((part) => part.is_estimated) &&
          "~ estimated: divided as the client divides a fresh session. "}
        {asked !== null && `The client was asked ${ago(asked, now.value)} what a new session has.`}
      </p>
    </>
  );
}

interface RowProps {
  part: CarriedPart;
  project: string;
  hasAgent: boolean;
}

function Row({ part, project, hasAgent }: RowProps) {
  const isCalled = part.kind !== "memory file";
  const size = part.tokens === null ? "unknown" : tokens(part.tokens);
  const name = part.name.startsWith(`${project}/`)
    ? part.name.slice(project.length + 1)
    : part.name;
  return (
    <tr data-name={part.name}>
      <td class="name-cell" title={part.name}>
        {name}
      </td>
      <td>{part.kind}</td>
      {hasAgent && <td>{part.agent}</td>}
      <td class="figure">
        {part.is_estimated && "~"}
        {size}
      </td>
      <td class="figure">{count(part.sessions)}</td>
      <td class="figure">{isCalled && count(part.called_sessions)}</td>
      <td class="figure">{isCalled && count(part.calls)}</td>
      <td class="figure">{dollars(part.cost)}</td>
    </tr>
  );
}
