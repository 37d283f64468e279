"""The queries of the store, each keyed by organisation, `$1`, and the rows that they return."""

from typing import Generic

from brimline.context.inbox import BRIMLINE
from brimline.store.common_sql import select_main_threads
from brimline.store.postgres import statements as sql
from brimline.store.postgres.statements import RowT, Table

HANDOFF_HEADS = sql.HANDOFFS.select.replace('"text"', "'' AS text")


class Query(Generic[RowT]):
    """Selects the rows of a table that fulfil a condition, in an order."""

    def __init__(
        self, table: Table[RowT], condition: str = "TRUE", order: str = "", select: str = ""
    ) -> None:
        self.rows = table.rows
        self.text = f"{select or table.select} AND {condition} {order}"


class SessionQuery(Generic[RowT]):
    """Selects the rows of one session, or of all."""

    def __init__(self, table: Table[RowT], order: str, condition: str = "TRUE") -> None:
        self.all = Query(table, condition, order)
        self.one = Query(table, f"session = $2 AND {condition}", order)


_OF_SESSION = f"session = $2 AND day = {sql.DAY_OF_SESSION}"

SESSIONS = Query(sql.SESSIONS, order="ORDER BY seen_at DESC, id")
SESSION = Query(sql.SESSIONS, "id = $2")
THREADS = SessionQuery(sql.THREADS, "ORDER BY session, thread")
MAIN_THREADS = select_main_threads(
    "AND t.organisation = $1 WHERE s.organisation = $1 AND s.seen_at >= $2"
)
CALLS = Query(sql.CALLS, _OF_SESSION, "ORDER BY thread, cycle, seq, call")
CALLS_OF_THREAD = Query(sql.CALLS, f"{_OF_SESSION} AND thread = $3", "ORDER BY cycle, seq, call")
# Without an index: only a machine's daemon asks, and its store is in SQLite.
COPIED_CALLS = """SELECT DISTINCT call FROM calls
WHERE organisation = $1 AND call = ANY($3::text[]) AND (counted OR cost IS NOT NULL)
    AND session IN (SELECT session FROM calls
        WHERE organisation = $1 AND call = $3[1] AND seq = 0 AND session <> $2)"""
COMPACTIONS = SessionQuery(sql.COMPACTIONS, "ORDER BY session, thread, cycle")
SIGNALS = SessionQuery(sql.SIGNALS, "ORDER BY place")
SIGNALS_AFTER = f"""{sql.SIGNALS.select.replace("SELECT ", "SELECT place, ", 1)}
AND place > $2 ORDER BY place LIMIT $3"""
MESSAGES = SessionQuery(sql.MESSAGES, 'ORDER BY "order"')
PENDING_MESSAGES = SessionQuery(sql.MESSAGES, 'ORDER BY "order"', "state IN ('queued', 'handed')")
_SENT = f"state IN ('queued', 'handed') AND sender <> '{BRIMLINE}'"
_OF_MACHINE = "session IN (SELECT id FROM sessions WHERE organisation = $1 AND machine = $2)"
MACHINE_MESSAGES = Query(sql.MESSAGES, f"{_SENT} AND {_OF_MACHINE}", 'ORDER BY "order"')
MACHINE_HANDOFFS = Query(
    sql.HANDOFFS, f"{_OF_MACHINE} AND text <> '' AND used_at IS NULL AND at >= $3", "ORDER BY place"
)
# Which of several machines have any of these: the number of each, as it was asked for.
MACHINES_WITH_DELIVERIES = f"""WITH pending AS (
    SELECT session, 'infinity'::float8 AS at FROM messages
    WHERE organisation = $1 AND {_SENT}
    UNION ALL
    SELECT session, at FROM handoffs WHERE organisation = $1 AND text <> '' AND used_at IS NULL
)
SELECT DISTINCT asked.number
FROM unnest($2::text[], $3::float8[]) WITH ORDINALITY AS asked (machine, since, number)
JOIN sessions ON organisation = $1 AND sessions.machine = asked.machine
JOIN pending ON pending.session = sessions.id AND pending.at >= asked.since"""
HANDOFFS = Query(sql.HANDOFFS, "session = $2", "ORDER BY place DESC")
LAST_HANDOFF = Query(sql.HANDOFFS, "session = $2", "ORDER BY place DESC LIMIT 1", HANDOFF_HEADS)
LAST_HANDOFFS = Query(
    sql.HANDOFFS,
    "place IN (SELECT max(place) FROM handoffs WHERE organisation = $1 GROUP BY session)",
    "ORDER BY place DESC",
    HANDOFF_HEADS,
)
KNOWN_EVENTS = "SELECT key FROM event_keys WHERE organisation = $1 AND key = ANY($2::text[])"
CURSOR = "SELECT position FROM cursors WHERE organisation = $1 AND name = $2"
REVISION = "SELECT revision FROM revisions WHERE organisation = $1 AND session = $2"
CHANGES = "SELECT mark, session FROM changes WHERE organisation = $1 AND mark > $2 ORDER BY mark"
RECENT_CHANGES = """SELECT mark, session FROM changes
JOIN sessions ON sessions.organisation = $1 AND id = session AND seen_at >= $3
WHERE changes.organisation = $1 AND mark > $2 ORDER BY mark"""
