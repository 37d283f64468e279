"""SQL that is the same for SQLite 3.26 and PostgreSQL: queries, and what rows do to stored ones."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

from brimline.context.events import MAIN
from brimline.context.inbox import BRIMLINE, Message
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow

RowT = TypeVar("RowT", bound=msgspec.Struct)

SESSION_COLUMNS = len(SessionRow.__struct_fields__)

PENDING = "state IN ('queued', 'handed')"
SENT = f"{PENDING} AND sender <> '{BRIMLINE}'"  # by people, not by us


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
_SESSION = _fields_without(SessionRow, "id", "agent", "seen_at", "is_fork")
_THREAD = _fields_without(ThreadRow, "session", "thread")
_CALL = _fields_without(CallRow, "session", "thread", "call")
_COMPACTION = _fields_without(CompactionRow, "session", "thread", "cycle", "inferred", "overflow")

UPDATE_SESSION = f"""DO UPDATE SET agent = excluded.agent,
    seen_at = CASE WHEN excluded.seen_at > sessions.seen_at
        THEN excluded.seen_at ELSE sessions.seen_at END,
    is_fork = sessions.is_fork OR excluded.is_fork,
    {_filled("sessions", _SESSION)}
WHERE excluded.agent <> sessions.agent OR excluded.seen_at > sessions.seen_at
    OR (excluded.is_fork AND NOT sessions.is_fork)
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


# Of triggers that add a call to the total of its session. Released migrations have it: it stays.
ADD_COST = """DO UPDATE SET cost = session_costs.cost + excluded.cost,
    priced = session_costs.priced + excluded.priced"""


class Table(Generic[RowT]):
    """A table with a column for each field of a row; the database assigns the fields `assigned`."""

    def __init__(self, name: str, kind: type[RowT], *assigned: str) -> None:
        self.name = name
        self.fields = kind.__struct_fields__
        self.written = [field for field in self.fields if field not in assigned]
        self.values: Callable[[RowT], tuple[Any, ...]] = attrgetter(*self.written)


class Query(Generic[RowT]):
    """Selects the rows of a table that fulfil a condition, in an order.

    `heads_only` leaves the texts of handoffs empty.
    """

    def __init__(
        self, kind: type[RowT], table: str, where: str, order: str = "", heads_only: bool = False
    ) -> None:
        self.kind = kind
        columns = list_columns(kind.__struct_fields__)
        if heads_only:
            columns = columns.replace('"text"', "'' AS text")
        self.text = f"SELECT {columns} FROM {table} WHERE {where} {order}"


class SessionCost(msgspec.Struct, frozen=True):
    """The total of a session's calls and spendings with a price, in USD."""

    session: str
    cost: float


class SessionQuery(Generic[RowT]):
    """Selects the rows of one session, or of all."""

    def __init__(
        self, kind: type[RowT], table: str, own: str, one: str, order: str, where: str = "TRUE"
    ) -> None:
        self.all = Query(kind, table, f"{own} AND {where}", order)
        self.one = Query(kind, table, f"{own} AND {one} AND {where}", order)


class StoreQueries:
    """The queries of a database.

    `first` and `second` are its parameters, `own` is the condition of the organisation, and
    `calls_of` that of the calls of a session.
    """

    def __init__(self, first: str, second: str, own: str, calls_of: str) -> None:
        one = f"session = {first}"
        of_machine = f"session IN (SELECT id FROM sessions WHERE {own} AND machine = {first})"
        undelivered = f"text <> '' AND used_at IS NULL AND at >= {second}"
        last = f"place IN (SELECT max(place) FROM handoffs WHERE {own} GROUP BY session)"
        by_order = 'ORDER BY "order"'
        self.sessions = Query(SessionRow, "sessions", own, "ORDER BY seen_at DESC, id")
        self.session = Query(SessionRow, "sessions", f"{own} AND id = {first}")
        self.threads = SessionQuery(ThreadRow, "threads", own, one, "ORDER BY session, thread")
        self.costs = SessionQuery(SessionCost, "session_costs", own, one, "", "priced > 0")
        self.calls = Query(
            CallRow, "calls", f"{own} AND {calls_of}", "ORDER BY thread, cycle, seq, call"
        )
        self.calls_of_thread = Query(
            CallRow,
            "calls",
            f"{own} AND {calls_of} AND thread = {second}",
            "ORDER BY cycle, seq, call",
        )
        self.compactions = SessionQuery(
            CompactionRow, "compactions", own, one, "ORDER BY session, thread, cycle"
        )
        self.signals = SessionQuery(SignalRow, "signals", own, one, "ORDER BY place")
        self.signals_after = f"""SELECT place, {list_columns(SignalRow.__struct_fields__)}
        FROM signals WHERE {own} AND place > {first} ORDER BY place LIMIT {second}"""
        self.messages = SessionQuery(Message, "messages", own, one, by_order)
        self.pending_messages = SessionQuery(Message, "messages", own, one, by_order, PENDING)
        self.machine_messages = Query(
            Message, "messages", f"{own} AND {SENT} AND {of_machine}", by_order
        )
        self.machine_handoffs = Query(
            HandoffRow, "handoffs", f"{own} AND {of_machine} AND {undelivered}", "ORDER BY place"
        )
        self.handoffs = Query(HandoffRow, "handoffs", f"{own} AND {one}", "ORDER BY place DESC")
        self.handoff_heads = Query(
            HandoffRow, "handoffs", f"{own} AND {one}", "ORDER BY place", heads_only=True
        )
        self.last_handoff = Query(
            HandoffRow,
            "handoffs",
            f"{own} AND {one}",
            "ORDER BY place DESC LIMIT 1",
            heads_only=True,
        )
        self.last_handoffs = Query(
            HandoffRow, "handoffs", f"{own} AND {last}", "ORDER BY place DESC", heads_only=True
        )


class SqlQueries(ABC):
    """The queries of a store that both databases answer alike."""

    _queries: StoreQueries

    @abstractmethod
    async def _select(self, query: Query[RowT], *values: str | float) -> list[RowT]: ...

    async def _select_of(self, query: SessionQuery[RowT], session: str | None) -> list[RowT]:
        if session is None:
            return await self._select(query.all)
        return await self._select(query.one, session)

    async def sessions(self) -> list[SessionRow]:
        return await self._select(self._queries.sessions)

    async def session(self, id: str) -> SessionRow | None:
        rows = await self._select(self._queries.session, id)
        return rows[0] if rows else None

    async def threads(self, session: str | None = None) -> list[ThreadRow]:
        return await self._select_of(self._queries.threads, session)

    async def calls(self, session: str, thread: str | None = None) -> list[CallRow]:
        if thread is None:
            return await self._select(self._queries.calls, session)
        return await self._select(self._queries.calls_of_thread, session, thread)

    async def costs(self, session: str | None = None) -> dict[str, float]:
        rows = await self._select_of(self._queries.costs, session)
        return {row.session: row.cost for row in rows}

    async def compactions(self, session: str | None = None) -> list[CompactionRow]:
        return await self._select_of(self._queries.compactions, session)

    async def signals(self, session: str | None = None) -> list[SignalRow]:
        return await self._select_of(self._queries.signals, session)

    async def messages(self, session: str | None = None) -> list[Message]:
        return await self._select_of(self._queries.messages, session)

    async def pending_messages(self, session: str | None = None) -> list[Message]:
        return await self._select_of(self._queries.pending_messages, session)

    async def machine_deliveries(
        self, machine: str, since: float
    ) -> tuple[list[Message], list[HandoffRow]]:
        messages = await self._select(self._queries.machine_messages, machine)
        return messages, await self._select(self._queries.machine_handoffs, machine, since)

    async def last_handoffs(self, session: str | None = None) -> list[HandoffRow]:
        if session is None:
            return await self._select(self._queries.last_handoffs)
        return await self._select(self._queries.last_handoff, session)

    async def handoffs(self, session: str) -> list[HandoffRow]:
        return await self._select(self._queries.handoffs, session)
