/** The fleet: figures by group, who needs a handoff, the fullest sessions, and the machines. */

import type { FleetView as Fleet } from "../api-types";
import { FleetFigures, GroupTable } from "../components/fleet-groups";
import { HandoffRequests } from "../components/handoff-requests";
import { Select } from "../components/inputs";
import { Machines } from "../components/machines";
import { SessionRows } from "../components/session-rows";
import { count, moment } from "../format";
import { now } from "../state/clock";
import {
  fleet,
  fleetError,
  GROUPINGS,
  grouping,
  listed,
  MAX_LISTED,
  SPANS,
  span,
  useFleet,
  useMachines,
} from "../state/fleet";
import { NoFleetSessions } from "./no-sessions";

export function FleetView() {
  useFleet(grouping.value, span.value, listed.value);
  useMachines();
  const shown = fleet.value;
  return (
    <article class="fleet" data-testid="fleet" aria-label="Fleet">
      <header class="history-head">
        <h1>Fleet</h1>
        <Select
          label="by"
          value={grouping.value}
          of={GROUPINGS}
          set={(to) => {
            grouping.value = to;
          }}
          testid="fleet-by"
        />
        <Select
          label="last"
          value={span.value}
          of={SPANS}
          set={(to) => {
            span.value = to;
          }}
          testid="fleet-since"
        />
        {shown && <span class="quiet">since {moment(shown.since, now.peek())}</span>}
        {fleetError.value && <p role="alert">{fleetError.value}</p>}
      </header>
      {shown ? <FleetPanels fleet={shown} /> : <p class="quiet">Loading ...</p>}
    </article>
  );
}

function FleetPanels({ fleet }: { fleet: Fleet }) {
  const most = Math.min(fleet.total.filled, MAX_LISTED);
  if (fleet.total.seen === 0) {
    return <NoFleetSessions title="No sessions in this span" />;
  }
  return (
    <>
      <FleetFigures total={fleet.total} />
      <GroupTable fleet={fleet} />
      <HandoffRequests sessions={fleet.needs_handoff} amount={fleet.needs_handoff_count} />
      <section aria-labelledby="fullest">
        <h2 id="fullest" class="fleet-rows">
          Fullest sessions{" "}
          <span class="amount">
            {count(fleet.fullest.length)} of {count(fleet.total.sessions)} active
          </span>
        </h2>
        <SessionRows ids={fleet.fullest.map((view) => view.session.id)} />
        {listed.value < most && (
          <button
            type="button"
            class="more"
            onClick={() => {
              listed.value = MAX_LISTED;
            }}
          >
            Show the fullest {count(most)}
          </button>
        )}
      </section>
      <Machines />
    </>
  );
}
