"""Applies writes as SQL, in an open transaction that has the lock of the organisation."""

import datetime
import math
from collections.abc import Container, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

from brimline.context.inbox import Message
from brimline.store.base import (
    CancelMessages,
    ClaimSession,
    EventKeys,
    ExpectRevision,
    ForgetSessions,
    MarkMessage,
    MoveMessage,
    PutCall,
    PutCompaction,
    PutCursor,
    PutHandoff,
    PutSession,
    PutThread,
    QueueMessage,
    RecordSignal,
    SetReceive,
    UseHandoff,
    Write,
)
from brimline.store.postgres import statements as sql
from brimline.store.postgres.migrations import PARTITION_LOCK, Connection

MAX_EVENT_KEYS = 2_000_000  # of an organisation: older keys are deleted

PRUNE_EVERY = 1_000  # keys that are deleted together

_GATES = (ExpectRevision, EventKeys)  # in the order in which they stand in a list
_BARRIERS = frozenset({*_GATES, ClaimSession, ForgetSessions})

Operation: TypeAlias = tuple[str, tuple[Any, ...]]  # a statement and its values after `$1`


class PostgresWrites:
    """Applies lists of writes; `changed` are the sessions changed in the transaction so far.

    Writes to different tables do not depend on each other, except that some are barriers (gates,
    which can stop their list, and deletions) and that a signal queues its messages. So the writes
    to one table are sent together, in order.
    """

    def __init__(self, connection: Connection, organisation: str, locked: Any) -> None:
        self._connection = connection
        self._organisation = organisation
        self._mark: int = locked["mark"]
        self._event_keys: int = locked["event_keys"]
        self._day: datetime.date = locked["day"]
        # The changed sessions, and the time of the earliest call that was stored of each.
        self._changed: dict[str, float | None] = {}

    async def apply(self, lists: Sequence[Sequence[Write]]) -> list[list[bool]]:
        """Apply lists in order, then give every changed session a new mark."""
        claimed = await self._claimed_sessions(lists)
        if all(_has_gates_first(writes, claimed) for writes in lists):
            effects = await self._apply_together(lists)
        else:
            effects = [await self._apply_list(writes) for writes in lists]
        await self._finish()
        return effects

    async def _claimed_sessions(self, lists: Sequence[Sequence[Write]]) -> set[str]:
        """Return the sessions with a machine among those that the lists claim."""
        claims = {
            sql.storable(write.session)
            for writes in lists
            for write in writes
            if isinstance(write, ClaimSession)
        }
        if not claims:
            return claims
        rows = await self._connection.fetch(sql.CLAIMED_SESSIONS, self._organisation, list(claims))
        return {row["id"] for row in rows}

    async def _apply_together(self, lists: Sequence[Sequence[Write]]) -> list[list[bool]]:
        """Apply lists that begin with their gates: the gates of all, then the other writes."""
        effects = [[False] * len(writes) for writes in lists]
        open_lists = dict(enumerate(lists))
        for kind in _GATES:
            gates = [
                (n, place)
                for n, writes in open_lists.items()
                for place, write in enumerate(writes[: len(_GATES)])
                if isinstance(write, kind)
            ]
            won = await self._pass_gates([lists[n][place] for n, place in gates])
            for (n, place), effect in zip(gates, won, strict=True):
                effects[n][place] = effect
                if not effect:
                    del open_lists[n]
        rows = [
            (n, place)
            for n, writes in open_lists.items()
            for place, write in enumerate(writes)
            if type(write) not in _GATES
        ]
        won = await self._apply_rows([lists[n][place] for n, place in rows])
        for (n, place), effect in zip(rows, won, strict=True):
            effects[n][place] = effect
        return effects

    async def _apply_list(self, writes: Sequence[Write]) -> list[bool]:
        effects: list[bool] = []
        for kind, run in groupby(writes, _barrier):
            if kind is None:
                effects += await self._apply_rows(list(run))
                continue
            for write in run:
                if isinstance(write, ForgetSessions):
                    effects.append(await self._forget(write.before))
                elif isinstance(write, ClaimSession):
                    effects.append(await self._claim(write))
                else:
                    effects += await self._pass_gates([write])
                    if not effects[-1]:
                        return effects + [False] * (len(writes) - len(effects))
        return effects

    async def _apply_rows(self, writes: Sequence[Write]) -> list[bool]:
        """Apply writes that are no barriers."""
        effects = [False] * len(writes)
        calls: list[tuple[int, tuple[Any, ...]]] = []
        others: list[tuple[int, Write]] = []
        for number, write in enumerate(writes):
            if isinstance(write, PutCall):
                calls.append((number, sql.call_values(write.row)))
            else:
                others.append((number, write))
        rows = [_row_operation(*each) for each in others]
        await self._run(sorted(filter(None, rows), key=_table_order), effects)
        await self._put_calls(calls, effects)
        messages = [
            operation
            for number, write in others
            for operation in _message_operations(number, write, effects[number])
        ]
        await self._run(messages, effects)
        for number, write in others:
            if isinstance(write, MoveMessage) and effects[number]:
                self._changed.setdefault(sql.storable(write.to))
        return effects

    async def _run(self, operations: Iterable[Operation], effects: list[bool]) -> None:
        """Carry out operations in order, those with the same statement in one exchange."""
        for statement, run in groupby(operations, itemgetter(0)):
            values = [(self._organisation, *map(sql.storable, each)) for _, each in run]
            for number, session in await self._connection.fetchmany(statement, values):
                if number is not None:
                    effects[number] = True
                if session is not None:
                    self._changed.setdefault(session)

    async def _put_calls(
        self, calls: Sequence[tuple[int, tuple[Any, ...]]], effects: list[bool]
    ) -> None:
        """Put numbered calls with one statement; a call that comes twice needs another one."""
        while calls:
            numbers: dict[tuple[str, str, str], int] = {}
            times: dict[tuple[str, str, str], float | None] = {}
            rows: list[tuple[Any, ...]] = []
            again: list[tuple[int, tuple[Any, ...]]] = []
            for number, values in calls:
                if numbers.setdefault(values[:3], number) == number:
                    times[values[:3]] = values[sql.CALL_TIME]
                    rows.append(values)
                else:
                    again.append((number, values))
            stored = await self._connection.fetch(
                sql.PUT_CALLS, self._organisation, self._day, rows
            )
            for session, thread, call in stored:
                effects[numbers[session, thread, call]] = True
                at, earliest = times[session, thread, call], self._changed.get(session)
                self._changed[session] = min((at, earliest), key=_no_time_last)
            calls = again

    async def _pass_gates(self, gates: Sequence[Write]) -> list[bool]:
        """Apply event keys or expected revisions; those without effect stop their lists."""
        effects = [False] * len(gates)
        await self._run((_gate_operation(*gate) for gate in enumerate(gates)), effects)
        passed = [gate for gate, effect in zip(gates, effects, strict=True) if effect]
        self._event_keys += sum(len(each.keys) for each in passed if isinstance(each, EventKeys))
        return effects

    async def _claim(self, claim: ClaimSession) -> bool:
        if await self._claimed_sessions([[claim]]):
            return False
        session = sql.storable(claim.session)
        for statement in sql.CLAIM_SESSION:
            await self._execute(statement, session)
        await self._execute(sql.SET_MACHINE, session, sql.storable(claim.machine))
        self._changed.setdefault(session)
        return True

    async def _forget(self, before: float) -> bool:
        records = await self._connection.fetch(sql.OLD_SESSIONS, self._organisation, before)
        old = [record["id"] for record in records]
        if not old:
            return False
        for statement in sql.FORGET_SESSIONS:
            await self._execute(statement, old)
        records = await self._connection.fetch(sql.FORGET_CALL_DAYS, self._organisation, old)
        days = list({record["day"] for record in records})
        used = await self._connection.fetch(sql.USED_DAYS, days, self._day)
        await self._execute(sql.FORGET_CALLS, old, [record["day"] for record in used])
        for session in old:
            self._changed.pop(session, None)
        return True

    async def _finish(self) -> None:
        """Delete old event keys, mark the changed sessions and store the counts."""
        excess = self._event_keys - MAX_EVENT_KEYS
        if excess >= PRUNE_EVERY:
            await self._execute(sql.PRUNE_EVENT_KEYS, excess)
            self._event_keys -= excess
        changed, times = list(self._changed), list(self._changed.values())
        await self._execute(sql.MARK_CHANGED, self._mark, self._event_keys, changed, times)

    async def _execute(self, statement: str, *values: object) -> None:
        await self._connection.execute(statement, self._organisation, *values)


async def create_partition(connection: Connection, day: datetime.date) -> None:
    """Create the partition of a day's calls, before the transaction uses `calls`."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", PARTITION_LOCK)
    await connection.execute(
        f"CREATE TABLE IF NOT EXISTS calls_{day:%Y%m%d} PARTITION OF calls FOR VALUES IN ('{day}')"
    )


async def drop_unused_partitions(connection: Connection) -> None:
    """Drop the days before yesterday whose sessions are all forgotten, by every organisation."""
    async with connection.transaction():
        # All who use `calls` wait behind this one, so it waits only briefly for a long query.
        await connection.execute("SET LOCAL lock_timeout = '1s'")
        await connection.execute("SELECT pg_advisory_xact_lock($1)", PARTITION_LOCK)
        for record in await connection.fetch(sql.UNUSED_PARTITIONS):
            await connection.execute(f"DROP TABLE {record['relname']}")


def _has_gates_first(writes: Sequence[Write], claimed: Container[str]) -> bool:
    """Return whether only gates at the start of a list decide about its other writes.

    The first gate is the revision. A claim of a claimed session has no effect.
    """
    gates = 0
    for kind in _GATES:
        gates += len(writes) > gates and isinstance(writes[gates], kind)
    barriers = [write for write in writes[gates:] if type(write) in _BARRIERS]
    return all(
        isinstance(write, ClaimSession) and sql.storable(write.session) in claimed
        for write in barriers
    )


def _no_time_last(at: float | None) -> float:
    return math.inf if at is None else at


def _barrier(write: Write) -> type[Write] | None:
    """Return the kind of a write that those before and after it depend on."""
    return type(write) if type(write) in _BARRIERS else None


def _gate_operation(number: int, write: Write) -> Operation:
    match write:
        case ExpectRevision(session, revision):
            return sql.EXPECT_REVISION, (session, revision, number)
        case EventKeys(keys, at):
            return sql.INSERT_EVENT_KEYS, ([sql.storable(key) for key in keys], at, number)
        case _:
            raise TypeError(write)


def _row_operation(number: int, write: Write) -> Operation | None:
    match write:
        case PutSession(row):
            return sql.PUT_SESSION, (*sql.SESSIONS.values(row), number)
        case SetReceive(machine, receive):
            return sql.SET_RECEIVE, (machine, receive, number)
        case PutThread(row):
            return sql.PUT_THREAD, (*sql.THREADS.values(row), number)
        case PutCompaction(row):
            return sql.PUT_COMPACTION, (*sql.COMPACTIONS.values(row), number)
        case RecordSignal(row):
            return sql.INSERT_SIGNAL, (*sql.SIGNALS.values(row), number)
        case PutHandoff(row):
            return sql.PUT_HANDOFF, (*sql.HANDOFFS.values(row), number)
        case UseHandoff(id, at):
            return sql.USE_HANDOFF, (id, at, number)
        case PutCursor(name, position):
            return sql.PUT_CURSOR, (name, position, number)
        case _:
            return None


def _table_order(operation: Operation) -> int:
    """Return which table an operation belongs to; those of one table keep their order."""
    tables = (
        sql.PUT_SESSION, sql.PUT_THREAD, sql.PUT_COMPACTION, sql.INSERT_SIGNAL, sql.PUT_HANDOFF,
        sql.PUT_CURSOR,
    )  # fmt: skip
    same_table = {sql.USE_HANDOFF: sql.PUT_HANDOFF, sql.SET_RECEIVE: sql.PUT_SESSION}
    return tables.index(same_table.get(operation[0], operation[0]))


def _message_operations(number: int, write: Write, has_effect: bool) -> list[Operation]:
    match write:
        case RecordSignal(_, messages) if has_effect:
            return [_insertion(message, None) for message in messages]
        case QueueMessage(message):
            return [_insertion(message, number)]
        case CancelMessages(session, thread, cycle):
            return [(sql.CANCEL_MESSAGES, (session, thread, cycle, number))]
        case MarkMessage(id, to, since, at, handed_at, text):
            return [(sql.MARK_MESSAGE, (id, to, at, text, handed_at, since, number))]
        case MoveMessage(id, to):
            return [(sql.MOVE_MESSAGE, (id, to, number))]
        case _:
            return []


def _insertion(message: Message, number: int | None) -> Operation:
    return sql.INSERT_MESSAGE, (*sql.MESSAGES.values(message), number)
