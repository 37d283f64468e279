"""SQL that is the same for SQLite 3.26 and PostgreSQL.

Most of it is what a row does to a stored one: `DO UPDATE ...`.
"""

from collections.abc import Iterable

import msgspec

from brimline.context.events import MAIN
from brimline.store.rows import CallRow, CompactionRow, SessionRow, ThreadRow

SESSION_COLUMNS = len(SessionRow.__struct_fields__)


def list_columns(fields: Iterable[str]) -> str:
    return ", ".join(f'"{field}"' for field in fields)


def _replaced(fields: Iterable[str]) -> str:
    return ", ".join(f'"{field}" = excluded."{field}"' for field in fields)


def _filled(table: str, fields: Iterable[str]) -> str:
    """Return assignments of the new values that are not NULL."""
    return ", ".join(
        f'"{field}" = coalesce(excluded."{field}", {table}."{field}")' for field in fields
    )


def _differs(table: str, fields: Iterable[str], if_null: str) -> str:
    """Return the condition that a field changes; `if_null` decides if one value is NULL."""
    return " OR ".join(
        f'coalesce(excluded."{field}" <> {table}."{field}", {if_null.format(field=field)})'
        for field in fields
    )


def _fields_without(kind: type[msgspec.Struct], *key: str) -> list[str]:
    return [field for field in kind.__struct_fields__ if field not in key]


_IF_NEW = 'excluded."{field}" IS NOT NULL'
_IF_ONE_IS_NULL = '(excluded."{field}" IS NULL) <> (calls."{field}" IS NULL)'
_SESSION = _fields_without(SessionRow, "id", "agent", "seen_at")
_THREAD = _fields_without(ThreadRow, "session", "thread")
_CALL = _fields_without(CallRow, "session", "thread", "call")
_COMPACTION = _fields_without(CompactionRow, "session", "thread", "cycle", "inferred", "overflow")

UPDATE_SESSION = f"""DO UPDATE SET agent = excluded.agent,
    seen_at = CASE WHEN excluded.seen_at > sessions.seen_at
        THEN excluded.seen_at ELSE sessions.seen_at END,
    {_filled("sessions", _SESSION)}
WHERE excluded.agent <> sessions.agent OR excluded.seen_at > sessions.seen_at
    OR {_differs("sessions", _SESSION, _IF_NEW)}"""

UPDATE_THREAD = f"""DO UPDATE SET {_replaced(_THREAD)}
WHERE (excluded.cycle, excluded.seq) > (threads.cycle, threads.seq)"""

UPDATE_CALL = f"""DO UPDATE SET {_replaced(_CALL)}
WHERE (excluded.cycle, excluded.seq) >= (calls.cycle, calls.seq)
    AND ({_differs("calls", _CALL, _IF_ONE_IS_NULL)})"""

UPDATE_REVISION = """DO UPDATE SET revision = excluded.revision
WHERE revisions.revision = excluded.revision - 1"""

ADVANCE_REVISION = "DO UPDATE SET revision = revisions.revision + 1"

UPDATE_COMPACTION = f"""DO UPDATE SET
    inferred = compactions.inferred AND excluded.inferred,
    overflow = compactions.overflow OR excluded.overflow,
    {_filled("compactions", _COMPACTION)}
WHERE (compactions.inferred AND NOT excluded.inferred)
    OR (excluded.overflow AND NOT compactions.overflow)
    OR {_differs("compactions", _COMPACTION, _IF_NEW)}"""


def select_main_threads(conditions: str) -> str:
    """Return the query of sessions with their main threads.

    `conditions` begin with more of those of the join. The first SESSION_COLUMNS are the session's.
    """
    columns = [f's."{field}"' for field in SessionRow.__struct_fields__]
    columns += [f't."{field}"' for field in ThreadRow.__struct_fields__]
    return f"""SELECT {", ".join(columns)} FROM sessions AS s
    JOIN threads AS t ON t.session = s.id AND t.thread = '{MAIN}' {conditions}"""
