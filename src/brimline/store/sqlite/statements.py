"""The SQL of the store, for SQLite 3.26. Keys and `ON CONFLICT` make writes idempotent."""

import sqlite3
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

from brimline.context.inbox import Message
from brimline.store.common_sql import (
    ADVANCE_REVISION,
    SESSION_COLUMNS,
    UPDATE_CALL,
    UPDATE_COMPACTION,
    UPDATE_REVISION,
    UPDATE_SESSION,
    UPDATE_THREAD,
    Query,
    RowT,
    StoreQueries,
    Table,
    list_columns,
    select_main_threads,
)
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow

OLD_SESSIONS = "SELECT id FROM sessions WHERE seen_at < ?"


class SqliteTable(Table[RowT]):
    """A table, and the statements that insert a row and forget those of old sessions."""

    def __init__(self, name: str, kind: type[RowT], *assigned: str) -> None:
        super().__init__(name, kind, *assigned)
        marks = ", ".join("?" * len(self.written))
        self.insert = f"INSERT INTO {name} ({list_columns(self.written)}) VALUES ({marks})"
        self.forget = f"DELETE FROM {name} WHERE session IN ({OLD_SESSIONS})"


SESSIONS = SqliteTable("sessions", SessionRow)
THREADS = SqliteTable("threads", ThreadRow)
CALLS = SqliteTable("calls", CallRow)
COMPACTIONS = SqliteTable("compactions", CompactionRow)
SIGNALS = SqliteTable("signals", SignalRow)
MESSAGES = SqliteTable("messages", Message, "order")
HANDOFFS = SqliteTable("handoffs", HandoffRow)
SESSION_TABLES: tuple[SqliteTable[Any], ...] = (
    THREADS,
    CALLS,
    COMPACTIONS,
    SIGNALS,
    MESSAGES,
    HANDOFFS,
)

PUT_SESSION = f"{SESSIONS.insert} ON CONFLICT (id) {UPDATE_SESSION}"

PUT_THREAD = f"{THREADS.insert} ON CONFLICT (session, thread) {UPDATE_THREAD}"

# A call has the mark that its session had after the call was last changed.
PUT_CALL = f"""INSERT INTO calls ({list_columns(CALLS.fields)}, mark)
VALUES ({", ".join("?" * len(CALLS.fields))}, ?)
ON CONFLICT (session, thread, call)
{UPDATE_CALL.replace(" SET ", " SET mark = excluded.mark, ", 1)}"""

PUT_COMPACTION = f"{COMPACTIONS.insert} ON CONFLICT (session, thread, cycle) {UPDATE_COMPACTION}"

INSERT_SIGNAL = (
    f"{SIGNALS.insert} ON CONFLICT (session, thread, cycle, kind, level, arm) DO NOTHING"
)

INSERT_MESSAGE = f"{MESSAGES.insert} ON CONFLICT (id) DO NOTHING"

CANCEL_MESSAGES = """UPDATE messages SET state = 'cancelled'
WHERE session = ? AND thread = ? AND cycle <= ? AND state IN ('queued', 'handed')"""

MOVE_MESSAGE = (
    "UPDATE messages SET session = ?1 WHERE id = ?2 AND state = 'queued' AND session <> ?1"
)

PUT_HANDOFF = f"{HANDOFFS.insert} ON CONFLICT (id) DO NOTHING"

USE_HANDOFF = "UPDATE handoffs SET used_at = ?1 WHERE id = ?2 AND coalesce(used_at, 0) < ?1"

INSERT_EVENT_KEY = "INSERT INTO once (key, at) VALUES (?, ?) ON CONFLICT (key) DO NOTHING"

DELETE_EVENT_KEY = "DELETE FROM once WHERE key = ?"

PRUNE_EVENT_KEYS = "DELETE FROM once WHERE place <= ?"

PUT_CURSOR = """INSERT INTO cursors (name, position) SELECT ?1, ?2 WHERE ?2 > 0
ON CONFLICT (name) DO UPDATE SET position = excluded.position
WHERE excluded.position > cursors.position"""

LAST_MARK = """SELECT max(mark)
FROM (SELECT max(mark) AS mark FROM changes UNION ALL SELECT mark FROM given) AS marks"""

MARK_CHANGED = """INSERT INTO changes (session, mark) VALUES (?, ?)
ON CONFLICT (session) DO UPDATE SET mark = excluded.mark"""

KEEP_MARK = f"UPDATE given SET mark = ({LAST_MARK})"

# Without a row the revision is 0.
EXPECT_REVISION = f"""INSERT INTO revisions (session, revision) SELECT ?1, ?2 + 1
WHERE ?2 = 0 OR EXISTS (SELECT 1 FROM revisions WHERE session = ?1)
ON CONFLICT (session) {UPDATE_REVISION}"""

# What telemetry has reported of a session that a machine claims.
CLAIM_SESSION = (
    *(f"DELETE FROM {table.name} WHERE session = ?" for table in (THREADS, CALLS, COMPACTIONS)),
    "DELETE FROM session_costs WHERE session = ?",
    f"INSERT INTO revisions VALUES (?, 1) ON CONFLICT (session) {ADVANCE_REVISION}",
)

SET_MACHINE = "UPDATE sessions SET machine = ? WHERE id = ?"

SESSIONS_WITH_OTHER_RECEIVE = "SELECT id FROM sessions WHERE machine = ? AND receive IS NOT ?"
SET_RECEIVE = "UPDATE sessions SET receive = ? WHERE id = ?"

# Forget the sessions that were last seen before a time: what belongs to them goes first.
FORGET_SESSIONS = (
    *(table.forget for table in SESSION_TABLES),
    f"DELETE FROM session_costs WHERE session IN ({OLD_SESSIONS})",
    f"DELETE FROM changes WHERE session IN ({OLD_SESSIONS})",
    f"DELETE FROM revisions WHERE session IN ({OLD_SESSIONS})",
    "DELETE FROM sessions WHERE seen_at < ?",
)

SESSION_OF_MESSAGE = "SELECT session FROM messages WHERE id = ?"
MACHINE_OF_SESSION = "SELECT machine FROM sessions WHERE id = ? AND machine IS NOT NULL"
SESSION_OF_HANDOFF = "SELECT session FROM handoffs WHERE id = ?"


def mark_message(states: int) -> str:
    """Return the statement that changes a message's state from one of `states` states."""
    since = ", ".join("?" * states)
    return f"""UPDATE messages
    SET state = ?, handed_at = CASE WHEN ? = 'handed' THEN ? ELSE handed_at END,
    text = coalesce(?, text)
    WHERE id = ? AND (? IS NULL OR handed_at = ?) AND state IN ({since})"""


QUERIES = StoreQueries("?1", "?2", own="TRUE", calls_of="session = ?1")
_CALLS_AFTER = Query(
    CallRow, "calls", "session = ?1 AND mark > ?2", "ORDER BY thread, cycle, seq, call"
)
_MAIN_THREADS = select_main_threads("WHERE s.seen_at >= ?")


def select(
    connection: sqlite3.Connection, query: Query[RowT], values: Sequence[str | float]
) -> list[RowT]:
    return make_rows(query.kind, connection.execute(query.text, values))


def make_rows(kind: type[RowT], selected: Iterable[tuple[Any, ...]]) -> list[RowT]:
    """Return rows of what was selected; SQLite has no booleans."""
    flags = _flags(kind)
    if not flags:
        return [kind(*values) for values in selected]
    return [kind(*_with_flags(values, flags)) for values in selected]


def _with_flags(values: Iterable[Any], flags: Iterable[int]) -> list[Any]:
    fields = list(values)
    for place in flags:
        fields[place] = bool(fields[place])
    return fields


@cache
def _flags(kind: type[msgspec.Struct]) -> list[int]:
    fields = msgspec.structs.fields(kind)
    return [place for place, field in enumerate(fields) if field.type is bool]


def main_threads(
    connection: sqlite3.Connection, seen_since: float
) -> list[tuple[SessionRow, ThreadRow]]:
    selected = connection.execute(_MAIN_THREADS, (seen_since,)).fetchall()
    sessions = make_rows(SessionRow, (each[:SESSION_COLUMNS] for each in selected))
    threads = make_rows(ThreadRow, (each[SESSION_COLUMNS:] for each in selected))
    return list(zip(sessions, threads, strict=True))


def signals_after(
    connection: sqlite3.Connection, position: int, limit: int
) -> list[tuple[int, SignalRow]]:
    selected = connection.execute(QUERIES.signals_after, (position, limit)).fetchall()
    rows = make_rows(SignalRow, (each[1:] for each in selected))
    return [(each[0], row) for each, row in zip(selected, rows, strict=True)]


def cursor(connection: sqlite3.Connection, name: str) -> int:
    found = connection.execute("SELECT position FROM cursors WHERE name = ?", (name,)).fetchone()
    return found[0] if found else 0


def calls_after(connection: sqlite3.Connection, session: str, mark: int) -> list[CallRow]:
    return select(connection, _CALLS_AFTER, (session, mark))


def copied_calls(connection: sqlite3.Connection, session: str, calls: Sequence[str]) -> set[str]:
    text = """SELECT call FROM calls WHERE (counted OR cost IS NOT NULL)
        AND session IN (SELECT session FROM calls WHERE call = ? AND seq = 0 AND session <> ?)"""
    summed = connection.execute(text, (calls[0], session)).fetchall() if calls else []
    return {call for (call,) in summed}.intersection(calls)


def known_events(connection: sqlite3.Connection, keys: Sequence[str]) -> set[str]:
    text = "SELECT 1 FROM once WHERE key = ?"
    return {key for key in keys if connection.execute(text, (key,)).fetchone()}


def revision(connection: sqlite3.Connection, session: str) -> int:
    text = "SELECT revision FROM revisions WHERE session = ?"
    row = connection.execute(text, (session,)).fetchone()
    return row[0] if row else 0


def changes(
    connection: sqlite3.Connection, after: int, seen_since: float = 0.0
) -> list[tuple[int, str]]:
    text = """SELECT mark, session FROM changes WHERE mark > ?1
        AND (?2 = 0 OR session IN (SELECT id FROM sessions WHERE seen_at >= ?2)) ORDER BY mark"""
    return connection.execute(text, (after, seen_since)).fetchall()
