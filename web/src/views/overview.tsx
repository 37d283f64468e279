/** All live sessions, fullest first. */

import { useLayoutEffect } from "preact/hooks";
import { board, filter, live, order, total } from "../app";
import { plural } from "../format";
import { Filters } from "../parts/filters";
import { Row } from "../parts/row";
import { NO_FILTER } from "../state/list";
import { Empty } from "./empty";

export function Overview() {
  return (
    <>
      <h1 class="unseen">Sessions</h1>
      {total.value > 0 && <Filters />}
      <List />
    </>
  );
}

function List() {
  const ids = order.value;
  const held = focusedRow();
  useLayoutEffect(() => {
    // A row that is moved loses the focus: whoever walks by keyboard must keep it.
    if (held && document.activeElement === document.body) held.focus({ preventScroll: true });
  }, [ids]);
  if (ids.length > 0) {
    return (
      <ol class="rows" aria-label="Sessions" data-testid="sessions">
        {ids.map((id) => (
          <Row key={id} id={id} />
        ))}
      </ol>
    );
  }
  if (!board.known.value) return <Waiting />;
  return total.value === 0 ? <Empty /> : <NoneFits />;
}

function focusedRow(): HTMLElement | null {
  const active = document.activeElement;
  return active instanceof HTMLElement && active.matches(".row-name") ? active : null;
}

function Waiting() {
  const words =
    live.connection.value === "lost" ? "The daemon does not answer." : "Asking the daemon ...";
  return (
    <section class="note" data-testid="waiting">
      <h2>{words}</h2>
      {live.connection.value === "lost" && (
        <p>
          Start it with <code>brimline serve</code>; this page goes on by itself.
        </p>
      )}
    </section>
  );
}

function NoneFits() {
  const all = () => {
    filter.value = { ...NO_FILTER, past: true };
  };
  return (
    <section class="note" data-testid="none-fits">
      <h2>No session fits</h2>
      <p>
        {plural(total.value, "session is", "sessions are")} known in all, ended and older ones
        counted.
      </p>
      <button type="button" onClick={all}>
        Show all
      </button>
    </section>
  );
}
