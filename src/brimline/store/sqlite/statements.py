"""The SQL statements of writes, for SQLite 3.26. Keys and `ON CONFLICT` make them idempotent."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

from brimline.context.inbox import Message
from brimline.store.common_sql import (
    ADVANCE_REVISION,
    UPDATE_CALL,
    UPDATE_COMPACTION,
    UPDATE_REVISION,
    UPDATE_SESSION,
    UPDATE_THREAD,
    list_columns,
)
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow

RowT = TypeVar("RowT", bound=msgspec.Struct)

OLD_SESSIONS = "SELECT id FROM sessions WHERE seen_at < ?"


class Table(Generic[RowT]):
    """A table with a column for each field of a row; SQLite assigns the fields `assigned`."""

    def __init__(self, name: str, kind: type[RowT], *assigned: str) -> None:
        self.name, self.kind = name, kind
        self.fields = kind.__struct_fields__
        types = [field.type for field in msgspec.structs.fields(kind)]
        self._flags = [place for place, type in enumerate(types) if type is bool]
        written = [field for field in self.fields if field not in assigned]
        self.values: Callable[[RowT], tuple[Any, ...]] = attrgetter(*written)
        marks = ", ".join("?" * len(written))
        self.insert = f"INSERT INTO {name} ({list_columns(written)}) VALUES ({marks})"
        self.select = f"SELECT {list_columns(self.fields)} FROM {name}"
        self.forget = f"DELETE FROM {name} WHERE session IN ({OLD_SESSIONS})"

    def rows(self, selected: Iterable[tuple[Any, ...]]) -> list[RowT]:
        if not self._flags:
            return [self.kind(*values) for values in selected]
        return [self.kind(*self._with_flags(values)) for values in selected]

    def _with_flags(self, values: Iterable[Any]) -> list[Any]:
        """Return the values of a row with booleans, which SQLite does not have."""
        fields = list(values)
        for place in self._flags:
            fields[place] = bool(fields[place])
        return fields


SESSIONS = Table("sessions", SessionRow)
THREADS = Table("threads", ThreadRow)
CALLS = Table("calls", CallRow)
COMPACTIONS = Table("compactions", CompactionRow)
SIGNALS = Table("signals", SignalRow)
MESSAGES = Table("messages", Message, "order")
HANDOFFS = Table("handoffs", HandoffRow)
SESSION_TABLES: tuple[Table[Any], ...] = (THREADS, CALLS, COMPACTIONS, SIGNALS, MESSAGES, HANDOFFS)

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
    f"INSERT INTO revisions VALUES (?, 1) ON CONFLICT (session) {ADVANCE_REVISION}",
)

SET_MACHINE = "UPDATE sessions SET machine = ? WHERE id = ?"

SESSIONS_WITH_OTHER_RECEIVE = "SELECT id FROM sessions WHERE machine = ? AND receive IS NOT ?"
SET_RECEIVE = "UPDATE sessions SET receive = ? WHERE id = ?"

# Forget the sessions that were last seen before a time: what belongs to them goes first.
FORGET_SESSIONS = (
    *(table.forget for table in SESSION_TABLES),
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
