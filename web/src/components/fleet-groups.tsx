/** The figures of a fleet: those of all sessions, and a table by group. */

import { useSignal } from "@preact/signals";
import type { FleetGroup, FleetView } from "../api-types";
import { count, dollars, percent, plural } from "../format";
import { GROUPINGS, type Grouping } from "../state/fleet";
import { overviewHash } from "../state/list-address";
import { NO_FILTER } from "../state/session-list";
import { type KeyFigure, KeyFigures } from "./key-figures";
import { type Column, Table } from "./table";

export function FleetFigures({ total }: { total: FleetGroup }) {
  const figures: KeyFigure[] = [
    ["active sessions", count(total.sessions), `${count(total.seen)} seen in this span`],
    ["over the first level", percent(total.over_first_percent), fillTitle(total, "over_first")],
    ["over the last level", percent(total.over_last_percent), fillTitle(total, "over_last")],
    ["at the limit", percent(total.at_limit_percent), fillTitle(total, "at_limit")],
    ["compactions an hour", rate(total), plural(total.compactions, "compaction")],
    ["lost work", percent(total.lost_percent), lostTitle(total)],
    ["cost", dollars(total.cost), plural(total.calls, "call")],
    ["cache misses", dollars(total.miss_cost), "the part of the cost that cache misses added"],
  ];
  return <KeyFigures figures={figures} label="All groups" testid="fleet-total" />;
}

const COLUMNS: Column[] = [
  { name: "sessions", figure: true },
  { name: "first level", figure: true },
  { name: "last level", figure: true },
  { name: "at limit", figure: true },
  { name: "compactions/h", figure: true },
  { name: "lost work", figure: true },
  { name: "cost", figure: true },
  { name: "misses", figure: true },
];

/** More would push the sessions that need a handoff far down. */
const FIRST = 20;

export function GroupTable({ fleet }: { fleet: FleetView }) {
  const all = useSignal(false);
  const shown = all.value ? fleet.groups : fleet.groups.slice(0, FIRST);
  const name = GROUPINGS[fleet.by];
  return (
    <section class="panel" aria-labelledby="groups">
      <h2 id="groups">
        By {name} <span class="amount">{count(fleet.groups.length + fleet.more_groups)}</span>
      </h2>
      <Table label={`By ${name}`} columns={[{ name }, ...COLUMNS]} testid="fleet-groups">
        {shown.map((group) => (
          <GroupRow key={group.key} group={group} by={fleet.by} />
        ))}
      </Table>
      {shown.length < fleet.groups.length && (
        <button
          type="button"
          class="more"
          onClick={() => {
            all.value = true;
          }}
        >
          {fleet.more_groups > 0 ? "Show the largest" : "Show all"} {count(fleet.groups.length)}
        </button>
      )}
      {all.value && fleet.more_groups > 0 && (
        <p class="quiet">{plural(fleet.more_groups, "smaller group")} not shown.</p>
      )}
    </section>
  );
}

function GroupRow({ group, by }: { group: FleetGroup; by: Grouping }) {
  const address = sessionsOf(by, group.key);
  return (
    <tr data-key={group.key ?? ""}>
      <td class="group-name" title={group.key ?? undefined}>
        {group.key === null && <span class="quiet">no {GROUPINGS[by]}</span>}
        {address === null ? group.key : <a href={address}>{group.key}</a>}
      </td>
      <td class="figure" title={`${count(group.seen)} seen in this span`}>
        {count(group.sessions)}
      </td>
      <FillCell group={group} field="over_first" level="medium" />
      <FillCell group={group} field="over_last" level="high" />
      <FillCell group={group} field="at_limit" level="limit" />
      <td class="figure" title={plural(group.compactions, "compaction")}>
        {rate(group)}
      </td>
      <td class="figure" title={lostTitle(group)} data-alert={group.lost > 0 ? "" : undefined}>
        {percent(group.lost_percent)}
      </td>
      <td class="figure" title={plural(group.calls, "call")}>
        {dollars(group.cost)}
      </td>
      <td class="figure">{dollars(group.miss_cost)}</td>
    </tr>
  );
}

/** The address of a group's sessions; null of those without one, which no filter finds. */
function sessionsOf(by: Grouping, key: string | null): string | null {
  if (key === null) return null;
  const filter = { ...NO_FILTER };
  if (by === "version") {
    const [agent = "", ...version] = key.split(" ");
    filter.agent = agent;
    filter.version = version.join(" ");
  } else {
    filter[by] = key;
  }
  return overviewHash({ filter, sort: "need" });
}

type FillField = "over_first" | "over_last" | "at_limit";

interface FillProps {
  group: FleetGroup;
  field: FillField;
  level: "medium" | "high" | "limit";
}

/** A share of the sessions; in the colour of its level if there are any. */
function FillCell({ group, field, level }: FillProps) {
  return (
    <td
      class="figure"
      title={fillTitle(group, field)}
      data-level={group[field] > 0 ? level : undefined}
    >
      {percent(group[`${field}_percent`])}
    </td>
  );
}

function fillTitle(group: FleetGroup, field: FillField): string {
  return `${count(group[field])} of ${plural(group.filled, "session")} whose fill is known`;
}

function lostTitle(group: FleetGroup): string {
  return `${count(group.lost)} of ${plural(group.seen, "session")} compacted without a handoff`;
}

function rate(group: FleetGroup): string {
  return group.compactions_per_hour.toFixed(1);
}
