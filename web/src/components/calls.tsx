/** The calls of a session with their cost and tools, latest first; folded at first. */

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { CallRow, Explanation } from "../api-types";
import { callsCsv } from "../calls-export";
import { toolsText } from "../explanation/slices";
import { count, dollars, modelName, moment } from "../format";
import { now } from "../state/clock";
import type { SessionDetail } from "../state/session-detail";
import { placeCalls, sentOf } from "../timeline/plot";
import { ExportButton } from "./export-button";
import { FoldedPanel } from "./panel";
import { type Column, Table } from "./table";

const PAGE = 25;
/** Rows above the selected call. */
const ABOVE = 5;

const COLUMNS: Column[] = [
  { name: "at" },
  { name: "thread" },
  { name: "cycle", figure: true },
  { name: "sent", figure: true },
  { name: "input", figure: true },
  { name: "cache read", figure: true },
  { name: "cache write", figure: true },
  { name: "output", figure: true },
  { name: "cost", figure: true },
  { name: "tools" },
  { name: "model" },
];

const callsJson = (calls: CallRow[]) => JSON.stringify(calls, null, 2);

interface Props {
  id: string;
  calls: CallRow[];
  detail: SessionDetail;
}

export function CallsPanel({ id, calls, detail }: Props) {
  const open = useSignal(false);
  const selected = detail.selected.value;
  useEffect(() => {
    if (selected) open.value = true;
  }, [selected]);
  return (
    <FoldedPanel
      id="calls"
      title="Calls"
      amount={count(calls.length)}
      wide
      open={open.value}
      toggled={(to) => {
        open.value = to;
      }}
      testid="calls-panel"
    >
      {open.value && (
        <>
          <CallsTable calls={calls} detail={detail} />
          <div class="actions">
            <ExportButton format="JSON" id={id} calls={calls} text={callsJson} />
            <ExportButton format="CSV" id={id} calls={calls} text={callsCsv} />
          </div>
        </>
      )}
    </FoldedPanel>
  );
}

function CallsTable({ calls, detail }: Omit<Props, "id">) {
  const first = useSignal(0);
  const shown = useSignal(PAGE);
  const body = useRef<HTMLDivElement>(null);
  const explanation = detail.explanation.value;
  const tools = useMemo(() => toolsOf(explanation), [explanation]);
  const latest = useMemo(() => placeCalls(calls, "calls").reverse(), [calls]);
  const selected = detail.selected.value;
  const key = selected && keyOf(selected.thread, selected.call);
  useEffect(() => {
    const place = latest.findIndex(({ call }) => keyOf(call.thread, call.call) === key);
    if (place < 0 || (place >= first.value && place < first.value + shown.value)) return;
    first.value = Math.max(0, place - ABOVE);
    shown.value = PAGE;
  }, [selected]);
  useLayoutEffect(() => {
    if (!selected) return;
    const row = body.current?.querySelector<HTMLElement>("[aria-current]");
    row?.scrollIntoView({ block: "center" });
    row?.focus({ preventScroll: true });
  }, [selected, first.value]);
  const end = first.value + shown.value;
  return (
    <div ref={body}>
      {first.value > 0 && (
        <button
          type="button"
          class="more"
          onClick={() => {
            first.value = 0;
          }}
        >
          Show the latest
        </button>
      )}
      <Table label="Calls" columns={COLUMNS} testid="calls">
        {latest.slice(first.value, end).map(({ call }) => {
          const own = keyOf(call.thread, call.call);
          return (
            <Line key={own} call={call} tools={tools.get(own) ?? ""} isSelected={own === key} />
          );
        })}
      </Table>
      {end < calls.length && (
        <button
          type="button"
          class="more"
          onClick={() => {
            shown.value += 4 * PAGE;
          }}
        >
          Show more
        </button>
      )}
    </div>
  );
}

const keyOf = (thread: string, call: string) => `${thread}\n${call}`;

/** The tools that each call ran. */
function toolsOf(explanation: Explanation | null): Map<string, string> {
  const tools = new Map<string, string>();
  for (const { thread, series } of explanation?.threads ?? [])
    for (const call of series ?? []) tools.set(keyOf(thread, call.call), toolsText(call.tools));
  return tools;
}

interface LineProps {
  call: CallRow;
  tools: string;
  isSelected: boolean;
}

function Line({ call, tools, isSelected }: LineProps) {
  return (
    <tr
      data-call={call.call}
      aria-current={isSelected ? "true" : undefined}
      tabIndex={isSelected ? -1 : undefined}
    >
      <td class="when">{moment(call.at, now.peek())}</td>
      <td>{call.thread}</td>
      <td class="figure">{call.cycle}</td>
      <td class="figure strong">{count(sentOf(call))}</td>
      <td class="figure">{count(call.input)}</td>
      <td class="figure">{count(call.cache_read)}</td>
      <td class="figure">{count(call.cache_write)}</td>
      <td class="figure">{count(call.output)}</td>
      <td class="figure">{dollars(call.cost)}</td>
      <td title={tools} data-field="tools">
        {tools}
      </td>
      <td>{modelName(call.model)}</td>
    </tr>
  );
}
