"""The queries of the store, and the rows that they return."""

import sqlite3
from typing import Generic

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

    def __call__(self, connection: sqlite3.Connection, *values: str) -> list[RowT]:
        """Return the rows; `values` are for the placeholders."""
        return self._rows(connection.execute(self.text, values))


class Queries(Generic[RowT]):
    """One query for a session or for all sessions."""

    def __init__(
        self, table: Table[RowT], order: str, *, condition: str = "TRUE", select: str = ""
    ) -> None:
        self._all = Query(table, condition, order, select)
        self.one = Query(table, f"session = ? AND {condition}", order, select)

    def __call__(self, connection: sqlite3.Connection, session: str | None) -> list[RowT]:
        """Return the rows of a session; None: of all sessions."""
        return self._all(connection) if session is None else self.one(connection, session)


SESSIONS = Query(sql.SESSIONS, order="ORDER BY seen_at DESC, id")
SESSION = Query(sql.SESSIONS, "id = ?")
THREADS = Queries(sql.THREADS, "ORDER BY session, thread")
CALLS = Query(sql.CALLS, "session = ?", "ORDER BY thread, cycle, seq, call")
CALLS_OF_THREAD = Query(sql.CALLS, "session = ? AND thread = ?", "ORDER BY cycle, seq, call")
COMPACTIONS = Queries(sql.COMPACTIONS, "ORDER BY session, thread, cycle")
SIGNALS = Queries(sql.SIGNALS, "ORDER BY place")
MESSAGES = Queries(sql.MESSAGES, 'ORDER BY "order"')
PENDING_MESSAGES = Queries(
    sql.MESSAGES, 'ORDER BY "order"', condition="state IN ('queued', 'handed')"
)
HANDOFFS = Query(sql.HANDOFFS, "session = ?", "ORDER BY place DESC")
LAST_HANDOFF = Query(sql.HANDOFFS, "session = ?", "ORDER BY place DESC LIMIT 1", _HEADS)
LAST_HANDOFFS = Query(
    sql.HANDOFFS,
    "place IN (SELECT max(place) FROM handoffs GROUP BY session)",
    "ORDER BY place DESC",
    _HEADS,
)


def has_event(connection: sqlite3.Connection, key: str) -> bool:
    """Return whether an event key is stored."""
    return bool(connection.execute("SELECT 1 FROM once WHERE key = ?", (key,)).fetchall())


def changes(connection: sqlite3.Connection, after: int) -> list[tuple[int, str]]:
    """Return the sessions that changed since a mark, each with its new mark."""
    text = "SELECT mark, session FROM changes WHERE mark > ? ORDER BY mark"
    return connection.execute(text, (after,)).fetchall()
