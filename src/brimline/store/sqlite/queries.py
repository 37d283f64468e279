"""The queries of the store, and the rows that they return."""

import sqlite3
from collections.abc import Sequence
from typing import Generic

from brimline.context.inbox import BRIMLINE
from brimline.store.common_sql import SESSION_COLUMNS, select_main_threads
from brimline.store.rows import CallRow, SessionRow, SignalRow, ThreadRow
from brimline.store.sqlite import statements as sql
from brimline.store.sqlite.statements import RowT, Table

_HEADS = sql.HANDOFFS.select.replace('"text"', "'' AS text")


class Query(Generic[RowT]):
    """Selects the rows of a table that fulfil a condition, in an order."""

    def __init__(
        self, table: Table[RowT], condition: str = "TRUE", order: str = "", select: str = ""
    ) -> None:
        self._rows = table.rows
        self.text = f"{select or table.select} WHERE {condition} {order}"

    def __call__(self, connection: sqlite3.Connection, *values: str | float) -> list[RowT]:
        return self._rows(connection.execute(self.text, values))


class SessionQuery(Generic[RowT]):
    """Selects the rows of one session, or of all if it is None."""

    def __init__(self, table: Table[RowT], order: str, condition: str = "TRUE") -> None:
        self._all = Query(table, condition, order)
        self.one = Query(table, f"session = ? AND {condition}", order)

    def __call__(self, connection: sqlite3.Connection, session: str | None) -> list[RowT]:
        return self._all(connection) if session is None else self.one(connection, session)


SESSIONS = Query(sql.SESSIONS, order="ORDER BY seen_at DESC, id")
SESSION = Query(sql.SESSIONS, "id = ?")
THREADS = SessionQuery(sql.THREADS, "ORDER BY session, thread")
CALLS = Query(sql.CALLS, "session = ?", "ORDER BY thread, cycle, seq, call")
CALLS_OF_THREAD = Query(sql.CALLS, "session = ? AND thread = ?", "ORDER BY cycle, seq, call")
_CALLS_AFTER = (
    f"{sql.CALLS.select} WHERE session = ? AND mark > ? ORDER BY thread, cycle, seq, call"
)
COMPACTIONS = SessionQuery(sql.COMPACTIONS, "ORDER BY session, thread, cycle")
SIGNALS = SessionQuery(sql.SIGNALS, "ORDER BY place")
SIGNALS_AFTER = f"""{sql.SIGNALS.select.replace("SELECT ", "SELECT place, ", 1)}
WHERE place > ? ORDER BY place LIMIT ?"""
MESSAGES = SessionQuery(sql.MESSAGES, 'ORDER BY "order"')
PENDING_MESSAGES = SessionQuery(sql.MESSAGES, 'ORDER BY "order"', "state IN ('queued', 'handed')")
_SENT = f"state IN ('queued', 'handed') AND sender <> '{BRIMLINE}'"
_OF_MACHINE = "session IN (SELECT id FROM sessions WHERE machine = ?)"
MACHINE_MESSAGES = Query(sql.MESSAGES, f"{_SENT} AND {_OF_MACHINE}", 'ORDER BY "order"')
MACHINE_HANDOFFS = Query(
    sql.HANDOFFS, f"{_OF_MACHINE} AND text <> '' AND used_at IS NULL AND at >= ?", "ORDER BY place"
)
HANDOFFS = Query(sql.HANDOFFS, "session = ?", "ORDER BY place DESC")
HANDOFF_HEADS = Query(sql.HANDOFFS, "session = ?", "ORDER BY place", _HEADS)
LAST_HANDOFF = Query(sql.HANDOFFS, "session = ?", "ORDER BY place DESC LIMIT 1", _HEADS)
LAST_HANDOFFS = Query(
    sql.HANDOFFS,
    "place IN (SELECT max(place) FROM handoffs GROUP BY session)",
    "ORDER BY place DESC",
    _HEADS,
)


_MAIN_THREADS = select_main_threads("WHERE s.seen_at >= ?")


def main_threads(
    connection: sqlite3.Connection, seen_since: float
) -> list[tuple[SessionRow, ThreadRow]]:
    selected = connection.execute(_MAIN_THREADS, (seen_since,)).fetchall()
    sessions = sql.SESSIONS.rows(each[:SESSION_COLUMNS] for each in selected)
    threads = sql.THREADS.rows(each[SESSION_COLUMNS:] for each in selected)
    return list(zip(sessions, threads, strict=True))


def signals_after(
    connection: sqlite3.Connection, position: int, limit: int
) -> list[tuple[int, SignalRow]]:
    selected = connection.execute(SIGNALS_AFTER, (position, limit)).fetchall()
    rows = sql.SIGNALS.rows(each[1:] for each in selected)
    return [(each[0], row) for each, row in zip(selected, rows, strict=True)]


def cursor(connection: sqlite3.Connection, name: str) -> int:
    found = connection.execute("SELECT position FROM cursors WHERE name = ?", (name,)).fetchone()
    return found[0] if found else 0


def calls_after(connection: sqlite3.Connection, session: str, mark: int) -> list[CallRow]:
    return sql.CALLS.rows(connection.execute(_CALLS_AFTER, (session, mark)))


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
