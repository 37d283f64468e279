/** The threads of a session, each with its bar. */

import type { SessionView, ThreadView } from "../api-types";
import { ago, count, modelName, occupancy, tokens } from "../format";
import { LEVEL_TEXTS, levelOf, limitPercent } from "../reading";
import { now } from "../state/clock";
import { Bar } from "./bar";
import { Panel } from "./panel";
import { type Column, Table } from "./table";

const COLUMNS: Column[] = [
  { name: "thread" },
  { name: "context" },
  { name: "percent", figure: true },
  { name: "level" },
  { name: "sent", figure: true },
  { name: "window", figure: true },
  { name: "calls", figure: true },
  { name: "state" },
  { name: "model" },
];

export function ThreadsTable({ view }: { view: SessionView }) {
  return (
    <Panel id="threads" title="Threads" amount={count(view.threads.length)} wide>
      <Table label="Threads" columns={COLUMNS} testid="threads">
        {view.threads.map((thread) => (
          <Line key={thread.thread} thread={thread} />
        ))}
      </Table>
    </Panel>
  );
}

function Line({ thread }: { thread: ThreadView }) {
  return (
    <tr data-thread={thread.thread}>
      <td title={thread.thread}>{thread.title ?? thread.thread}</td>
      <td class="bar-cell">
        <Bar thread={thread} limitAt={limitPercent(thread)} small />
      </td>
      <td class="figure strong">{occupancy(thread.percent_raw)}</td>
      <td>{LEVEL_TEXTS[levelOf(thread)]}</td>
      <td class="figure">{count(thread.sent)}</td>
      <td class="figure">{tokens(thread.window)}</td>
      <td class="figure">{count(thread.calls)}</td>
      <td>
        {thread.state}, {ago(thread.at, now.value)}
      </td>
      <td>{modelName(thread.model)}</td>
    </tr>
  );
}
