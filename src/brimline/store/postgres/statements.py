"""The SQL of the store, each statement keyed by organisation, `$1`.

A write returns its number in the batch and the session that it changed, if it has an effect.
"""

from typing import Any

from brimline.context.inbox import Message
from brimline.store.common_sql import (
    ADVANCE_REVISION,
    SENT,
    UPDATE_CALL,
    UPDATE_COMPACTION,
    UPDATE_REVISION,
    UPDATE_SESSION,
    UPDATE_THREAD,
    RowT,
    StoreQueries,
    Table,
    list_columns,
    select_main_threads,
)
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow

OWN = "organisation = $1"


class PostgresTable(Table[RowT]):
    """A table, and the statements that put a row and forget those of sessions."""

    def __init__(
        self, name: str, kind: type[RowT], *assigned: str, session: str = "session"
    ) -> None:
        super().__init__(name, kind, *assigned)
        self.columns, count = list_columns(self.written), len(self.written)
        self._parameters = ", ".join(f"${number}" for number in range(2, count + 2))
        self._returning = f"RETURNING ${count + 2}::int AS number, {session} AS session"
        self.forget = f"DELETE FROM {name} WHERE organisation = $1 AND {session} = ANY($2::text[])"

    def put(self, key: str, action: str) -> str:
        """Return the statement that inserts a row, or does something to the one with its key."""
        return f"""INSERT INTO {self.name} (organisation, {self.columns})
        VALUES ($1, {self._parameters})
        ON CONFLICT (organisation, {key}) {action} {self._returning}"""


def storable(value: Any) -> Any:
    """Return a value with U+FFFD for each NUL, which PostgreSQL does not store in a text."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def call_values(row: CallRow) -> tuple[Any, ...]:
    """Return the storable values of a call; looking at each value takes ten times as long."""
    values = CALLS.values(row)
    has_nul = "\0" in f"{row.session}{row.thread}{row.call}{row.model}{row.branch}"
    return tuple(map(storable, values)) if has_nul else values


SESSIONS = PostgresTable("sessions", SessionRow, session="sessions.id")
THREADS = PostgresTable("threads", ThreadRow)
CALLS = PostgresTable("calls", CallRow)
COMPACTIONS = PostgresTable("compactions", CompactionRow)
SIGNALS = PostgresTable("signals", SignalRow)
MESSAGES = PostgresTable("messages", Message, "order")
HANDOFFS = PostgresTable("handoffs", HandoffRow)

CALL_TIME = CALLS.written.index("at")  # the place in the values of a call

LOCK_ORGANISATION = """SELECT mark, event_keys, (now() AT TIME ZONE 'UTC')::date AS day
FROM organisations WHERE name = $1 FOR UPDATE"""

ADD_ORGANISATION = "INSERT INTO organisations (name) VALUES ($1) ON CONFLICT (name) DO NOTHING"

PUT_SESSION = SESSIONS.put("id", UPDATE_SESSION)

PUT_THREAD = THREADS.put("session, thread", UPDATE_THREAD)

DAY_OF_SESSION = "(SELECT day FROM call_days WHERE organisation = $1 AND session = $2)"

# One statement for all calls, `$3`: with an array for each field, asyncpg would look at each value
# twice. No call may be in it twice. The day of a session is that of its first call, `$2`.
PUT_CALLS = f"""WITH new AS (
    SELECT coalesce(call_days.day, $2::date) AS day, call_days.day IS NULL AS is_first, put.*
    FROM unnest($3::call_row_4[]) AS put
    LEFT JOIN call_days ON call_days.organisation = $1 AND call_days.session = put.session
), first AS (
    INSERT INTO call_days (organisation, session, day)
    SELECT DISTINCT $1::text, session, day FROM new WHERE is_first
)
INSERT INTO calls (organisation, day, {CALLS.columns})
SELECT $1::text, day, {CALLS.columns} FROM new
ON CONFLICT (organisation, session, thread, call, day) {UPDATE_CALL}
RETURNING session, thread, call"""

PUT_COMPACTION = COMPACTIONS.put("session, thread, cycle", UPDATE_COMPACTION)

INSERT_SIGNAL = SIGNALS.put("session, thread, cycle, kind, level, arm", "DO NOTHING")

INSERT_MESSAGE = MESSAGES.put("id", "DO NOTHING")

CANCEL_MESSAGES = """UPDATE messages SET state = 'cancelled'
WHERE organisation = $1 AND session = $2 AND thread = $3 AND cycle <= $4
    AND state IN ('queued', 'handed')
RETURNING $5::int AS number, session"""

MARK_MESSAGE = """UPDATE messages
SET state = $3, handed_at = CASE WHEN $3 = 'handed' THEN $4 ELSE handed_at END,
    text = coalesce($5, text)
WHERE organisation = $1 AND id = $2 AND ($6::float8 IS NULL OR handed_at = $6)
    AND state = ANY($7::text[])
RETURNING $8::int AS number, session"""

MOVE_MESSAGE = """UPDATE messages SET session = $3
FROM (SELECT session FROM messages WHERE organisation = $1 AND id = $2) AS before
WHERE organisation = $1 AND id = $2 AND state = 'queued' AND messages.session <> $3
RETURNING $4::int AS number, before.session"""

PUT_HANDOFF = HANDOFFS.put("id", "DO NOTHING")

USE_HANDOFF = """UPDATE handoffs SET used_at = $3
WHERE organisation = $1 AND id = $2 AND coalesce(used_at, 0) < $3
RETURNING $4::int AS number, session"""

PUT_CURSOR = """INSERT INTO cursors (organisation, name, position)
SELECT $1::text, $2::text, $3::bigint WHERE $3 > 0
ON CONFLICT (organisation, name) DO UPDATE SET position = excluded.position
WHERE excluded.position > cursors.position
RETURNING $4::int AS number, NULL::text AS session"""

# Each key is looked up by its own: with `key = ANY($2)`, PostgreSQL reads all keys of the
# organisation by their places until it has statistics of a new table.
KNOWN_EVENTS = """SELECT given.key FROM unnest($2::text[]) AS given (key)
CROSS JOIN LATERAL (
    SELECT FROM event_keys WHERE organisation = $1 AND key = given.key LIMIT 1
) AS known"""

INSERT_EVENT_KEYS = f"""INSERT INTO event_keys (organisation, key, at)
SELECT $1::text, key, $3::float8 FROM unnest($2::text[]) AS key
WHERE NOT EXISTS ({KNOWN_EVENTS})
ON CONFLICT (organisation, key) DO NOTHING RETURNING $4::int AS number, NULL AS session"""

PRUNE_EVENT_KEYS = """DELETE FROM event_keys WHERE organisation = $1 AND place <= (
    SELECT place FROM event_keys WHERE organisation = $1 ORDER BY place OFFSET $2 - 1 LIMIT 1
)"""

# Gives the changed sessions the marks after `$2`, and stores the counts of the organisation, in one
# exchange: a transaction of a batch has only 8.
MARK_CHANGED = """WITH counted AS (
    UPDATE organisations SET mark = $2::bigint + cardinality($4::text[]), event_keys = $3
    WHERE name = $1
)
INSERT INTO changes (organisation, session, mark, calls_since)
SELECT $1::text, session, $2 + number, since
FROM unnest($4, $5::float8[]) WITH ORDINALITY AS changed (session, since, number)
ON CONFLICT (organisation, session) DO UPDATE SET mark = excluded.mark,
    calls_since = least(changes.calls_since, excluded.calls_since)"""

# Without a row the revision is 0.
EXPECT_REVISION = f"""INSERT INTO revisions (organisation, session, revision)
SELECT $1, $2, $3::bigint + 1
WHERE $3 = 0 OR EXISTS (SELECT FROM revisions WHERE organisation = $1 AND session = $2)
ON CONFLICT (organisation, session) {UPDATE_REVISION}
RETURNING $4::int AS number, NULL AS session"""

CLAIMED_SESSIONS = """SELECT id FROM sessions
WHERE organisation = $1 AND id = ANY($2::text[]) AND machine IS NOT NULL"""

# What telemetry has reported of a session that a machine claims.
CLAIM_SESSION = (
    f"DELETE FROM calls WHERE organisation = $1 AND session = $2 AND day = {DAY_OF_SESSION}",
    "DELETE FROM threads WHERE organisation = $1 AND session = $2",
    "DELETE FROM compactions WHERE organisation = $1 AND session = $2",
    "DELETE FROM branch_hours WHERE organisation = $1 AND session = $2",
    "DELETE FROM session_costs WHERE organisation = $1 AND session = $2",
    f"""INSERT INTO revisions VALUES ($1, $2, 1)
    ON CONFLICT (organisation, session) {ADVANCE_REVISION}""",
)

SET_MACHINE = "UPDATE sessions SET machine = $3 WHERE organisation = $1 AND id = $2"

# Returns a row for each session of the machine that had another value.
SET_RECEIVE = """UPDATE sessions SET receive = $3
WHERE organisation = $1 AND machine = $2 AND receive IS DISTINCT FROM $3
RETURNING $4::int AS number, id AS session"""

OLD_SESSIONS = "SELECT id FROM sessions WHERE organisation = $1 AND seen_at < $2"

# What belongs to forgotten sessions, but calls.
FORGET_SESSIONS = (
    *(table.forget for table in (THREADS, COMPACTIONS, SIGNALS, MESSAGES, HANDOFFS, SESSIONS)),
    "DELETE FROM changes WHERE organisation = $1 AND session = ANY($2::text[])",
    "DELETE FROM revisions WHERE organisation = $1 AND session = ANY($2::text[])",
    "DELETE FROM branch_hours WHERE organisation = $1 AND session = ANY($2::text[])",
    "DELETE FROM session_costs WHERE organisation = $1 AND session = ANY($2::text[])",
)

FORGET_CALL_DAYS = """DELETE FROM call_days WHERE organisation = $1 AND session = ANY($2::text[])
RETURNING day"""

# Calls are deleted one by one only if their day goes on: other days are dropped as a whole.
FORGET_CALLS = """DELETE FROM calls
WHERE organisation = $1 AND session = ANY($2::text[]) AND day = ANY($3::date[])"""

USED_DAYS = """SELECT day FROM unnest($1::date[]) AS day
WHERE day >= $2::date - 1 OR EXISTS (SELECT FROM call_days WHERE call_days.day = day.day)"""

UNUSED_PARTITIONS = """SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid
WHERE inhparent = 'calls'::regclass
    AND to_date(right(relname, 8), 'YYYYMMDD') < (now() AT TIME ZONE 'UTC')::date - 1
    AND NOT EXISTS (
        SELECT FROM call_days WHERE day = to_date(right(relname, 8), 'YYYYMMDD')
    )"""

QUERIES = StoreQueries("$2", "$3", OWN, calls_of=f"session = $2 AND day = {DAY_OF_SESSION}")
MAIN_THREADS = select_main_threads(
    "AND t.organisation = $1 WHERE s.organisation = $1 AND s.seen_at >= $2"
)
# Without an index: only a machine's daemon asks, and its store is in SQLite.
COPIED_CALLS = """SELECT DISTINCT call FROM calls
WHERE organisation = $1 AND call = ANY($3::text[]) AND (counted OR cost IS NOT NULL)
    AND session IN (SELECT session FROM calls
        WHERE organisation = $1 AND call = $3[1] AND seq = 0 AND session <> $2)"""
# Which of several machines have any of these: the number of each, as it was asked for.
MACHINES_WITH_DELIVERIES = f"""WITH pending AS (
    SELECT session, 'infinity'::float8 AS at FROM messages
    WHERE organisation = $1 AND {SENT}
    UNION ALL
    SELECT session, at FROM handoffs WHERE organisation = $1 AND text <> '' AND used_at IS NULL
)
SELECT DISTINCT asked.number
FROM unnest($2::text[], $3::float8[]) WITH ORDINALITY AS asked (machine, since, number)
JOIN sessions ON organisation = $1 AND sessions.machine = asked.machine
JOIN pending ON pending.session = sessions.id AND pending.at >= asked.since"""
CURSOR = "SELECT position FROM cursors WHERE organisation = $1 AND name = $2"
REVISION = "SELECT revision FROM revisions WHERE organisation = $1 AND session = $2"
CHANGES = "SELECT mark, session FROM changes WHERE organisation = $1 AND mark > $2 ORDER BY mark"
RECENT_CHANGES = """SELECT mark, session FROM changes
JOIN sessions ON sessions.organisation = $1 AND id = session AND seen_at >= $3
WHERE changes.organisation = $1 AND mark > $2 ORDER BY mark"""
