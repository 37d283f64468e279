/** The machines that report to a fleet's server. */

import { useSignal } from "@preact/signals";
import type { MachineView } from "../api-types";
import { ago, count, duration, plural } from "../format";
import { now } from "../state/clock";
import { machines } from "../state/fleet";
import { Select } from "./inputs";
import { type Column, Table } from "./table";

const COLUMNS: Column[] = [
  { name: "machine" },
  { name: "last report" },
  { name: "behind", figure: true },
  { name: "refused", figure: true },
  { name: "token" },
  { name: "Brimline" },
  { name: "clients" },
  { name: "accepts" },
];

/** Columns that are left out if no machine has anything there: a phone has room for few. */
const IF_ANY: Record<string, (machine: MachineView) => boolean> = {
  behind: (machine) => machine.behind > 0,
  refused: (machine) => machine.refused > 0,
  token: (machine) => machine.token_ends_at !== null,
};

const SHOWN = { attention: "silent, or with a token that ends", all: "all" } as const;
type Shown = keyof typeof SHOWN;

const SILENT_S = 86_400;
const ENDS_SOON_S = 14 * 86_400;
const PAGE = 50;

export function Machines() {
  const shown = useSignal<Shown>("attention");
  const limit = useSignal(PAGE);
  const listed = machines.value;
  if (listed === null || listed.length === 0) return null;
  const at = now.value;
  const silent = listed.filter((machine) => at - machine.last_at > SILENT_S);
  const rows =
    shown.value === "all"
      ? listed
      : listed.filter((machine) => silent.includes(machine) || endsSoon(machine, at));
  const columns = COLUMNS.filter(({ name }) => rows.some(IF_ANY[name] ?? (() => true)));
  return (
    <section class="panel" aria-labelledby="machines" data-testid="machines">
      <div class="panel-head">
        <h2 id="machines">
          Machines{" "}
          <span class="amount">
            {count(listed.length)}, {count(silent.length)} silent
          </span>
        </h2>
        <Select
          label="show"
          value={shown.value}
          of={SHOWN}
          set={(to) => {
            shown.value = to;
          }}
          testid="machines-shown"
        />
      </div>
      {rows.length === 0 ? (
        <p class="quiet">Every machine has reported within a day, and no token ends soon.</p>
      ) : (
        <Table label="Machines" columns={columns} testid="machine-rows">
          {rows.slice(0, limit.value).map((machine) => (
            <Row key={machine.id} machine={machine} at={at} columns={columns} />
          ))}
        </Table>
      )}
      {rows.length > limit.value && (
        <button
          type="button"
          class="more"
          onClick={() => {
            limit.value += PAGE;
          }}
        >
          Show more
        </button>
      )}
    </section>
  );
}

interface RowProps {
  machine: MachineView;
  at: number;
  columns: Column[];
}

function Row({ machine, at, columns }: RowProps) {
  const who = [machine.user, machine.team].filter(Boolean).join(" · ");
  const has = (column: string) => columns.some(({ name }) => name === column);
  return (
    <tr data-machine={machine.id}>
      <td class="group-name" title={machine.id}>
        {machine.host ?? "unknown"}
        {who && <span class="why">{who}</span>}
      </td>
      <td class="when">{ago(machine.last_at, at)}</td>
      {has("behind") && (
        <td class="figure" title={`${plural(machine.behind, "session")} not sent yet`}>
          {machine.behind > 0 && count(machine.behind)}
        </td>
      )}
      {has("refused") && (
        <td class="figure" data-alert={machine.refused > 0 ? "" : undefined}>
          {machine.refused > 0 && (
            <span title={machine.refusal ?? undefined}>{count(machine.refused)}</span>
          )}
        </td>
      )}
      {has("token") && (
        <td data-alert={endsSoon(machine, at) ? "" : undefined}>{tokenEnd(machine, at)}</td>
      )}
      <td>{machine.version}</td>
      <td>{clientVersions(machine)}</td>
      <td>{machine.receive}</td>
    </tr>
  );
}

function endsSoon(machine: MachineView, at: number): boolean {
  return machine.token_ends_at !== null && machine.token_ends_at - at < ENDS_SOON_S;
}

function tokenEnd(machine: MachineView, at: number): string {
  if (machine.token_ends_at === null) return "";
  const left = machine.token_ends_at - at;
  return left > 0 ? `${duration(left)} left` : "ended";
}

function clientVersions(machine: MachineView): string {
  const pairs = Object.entries(machine.clients).sort();
  return pairs.map(([agent, version]) => `${agent} ${version}`).join(", ");
}
