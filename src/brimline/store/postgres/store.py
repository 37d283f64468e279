"""The store in PostgreSQL: a pool of connections, of which one at a time writes."""

import datetime
import logging
from collections.abc import Sequence
from typing import Any, TypeAlias

from brimline.context.inbox import Message
from brimline.errors import StoreFailed
from brimline.store.base import ForgetSessions, Write
from brimline.store.batches import SharedBatches
from brimline.store.common_sql import SESSION_COLUMNS, Query, RowT, SqlQueries
from brimline.store.fleet import DEFAULT_ORGANISATION
from brimline.store.postgres import statements as sql
from brimline.store.postgres.apply import PostgresWrites, create_partition, drop_unused_partitions
from brimline.store.postgres.migrations import Connection
from brimline.store.postgres.pool import DATABASE_ERRORS, INVALID_VALUE_ERRORS, ConnectionPool
from brimline.store.rows import HandoffRow, SessionRow, SignalRow, ThreadRow

MAX_BATCH = 256  # lists of writes in one transaction
LOGGER = logging.getLogger("brimline.store")

_Outcome: TypeAlias = list[bool] | Exception


class PostgresStore(SqlQueries):
    """The store of one organisation, which several processes share; `PostgresStore.open` opens it.

    Lists that are submitted while another transaction is under way share the next one.
    """

    _queries = sql.QUERIES

    def __init__(
        self, pool: ConnectionPool, organisation: str, owns_connections: bool = False
    ) -> None:
        self._pool, self._organisation = pool, organisation
        self._owns_connections = owns_connections  # `close` closes them
        self._writes = SharedBatches(self._outcomes, MAX_BATCH)
        self._deliveries = SharedBatches(self._have_deliveries, MAX_BATCH)
        self._day: datetime.date | None = None  # its partition of calls exists
        self._open = True

    @classmethod
    async def open(cls, url: str, organisation: str = DEFAULT_ORGANISATION) -> "PostgresStore":
        """Open the store of one organisation alone, with connections of its own.

        Raises NewerStore if a newer Brimline has migrated it, StoreFailed if it cannot be used.
        """
        return cls(await ConnectionPool.open(url), organisation, owns_connections=True)

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        """Apply the writes, even if the caller is cancelled.

        If the connection is lost during the commit, this raises, and they may be stored or not.
        """
        self._check_open()
        return await self._writes.submit(writes) if writes else []

    async def main_threads(self, seen_since: float) -> list[tuple[SessionRow, ThreadRow]]:
        records = await self._fetch(sql.MAIN_THREADS, seen_since)
        values = map(tuple, records)
        return [
            (SessionRow(*each[:SESSION_COLUMNS]), ThreadRow(*each[SESSION_COLUMNS:]))
            for each in values
        ]

    async def copied_calls(self, session: str, calls: Sequence[str]) -> set[str]:
        stored = {sql.storable(call): call for call in calls}
        records = await self._fetch(sql.COPIED_CALLS, sql.storable(session), list(stored))
        return {stored[record["call"]] for record in records}

    async def signals_after(self, position: int, limit: int) -> list[tuple[int, SignalRow]]:
        records = await self._fetch(sql.QUERIES.signals_after, position, limit)
        return [(record["place"], SignalRow(*list(record)[1:])) for record in records]

    async def machine_deliveries(
        self, machine: str, since: float
    ) -> tuple[list[Message], list[HandoffRow]]:
        """As in the protocol; machines that ask at once share the query that finds out for whom."""
        self._check_open()
        if not await self._deliveries.submit((sql.storable(machine), since)):
            return [], []
        return await super().machine_deliveries(machine, since)

    async def known_events(self, keys: Sequence[str]) -> set[str]:
        stored_keys = list(map(sql.storable, keys))
        records = await self._fetch(sql.KNOWN_EVENTS, stored_keys)
        known = {record["key"] for record in records}
        return {key for key, stored in zip(keys, stored_keys, strict=True) if stored in known}

    async def cursor(self, name: str) -> int:
        records = await self._fetch(sql.CURSOR, sql.storable(name))
        return records[0]["position"] if records else 0

    async def revision(self, session: str) -> int:
        records = await self._fetch(sql.REVISION, sql.storable(session))
        return records[0]["revision"] if records else 0

    async def changes(self, after: int = 0, seen_since: float = 0.0) -> list[tuple[int, str]]:
        if seen_since:
            records = await self._fetch(sql.RECENT_CHANGES, after, seen_since)
        else:
            records = await self._fetch(sql.CHANGES, after)
        return [(record["mark"], record["session"]) for record in records]

    async def is_elected(self, task: str) -> bool:
        """Return whether this process does a task that one of all that share the store does."""
        return await self._pool.election.is_elected(f"{self._organisation}: {task}")

    async def close(self) -> None:
        """Finish the work under way, and close its own connections; twice is the same as once."""
        if not self._open:
            return
        self._open = False
        await self._writes.finish()
        await self._deliveries.finish()
        if self._owns_connections:
            await self._pool.close()

    async def _select(self, query: Query[RowT], *values: str | float) -> list[RowT]:
        return [
            query.kind(*record)
            for record in await self._fetch(query.text, *map(sql.storable, values))
        ]

    async def _fetch(self, text: str, *values: object) -> Sequence[Any]:
        self._check_open()
        return await self._pool.fetch(text, self._organisation, *values)

    async def _have_deliveries(
        self, asked: Sequence[tuple[str, float]]
    ) -> Sequence[bool | Exception]:
        """Return which machines have messages or documents that are not older than asked for."""
        machines, times = zip(*asked, strict=True)
        try:
            records = await self._fetch(sql.MACHINES_WITH_DELIVERIES, machines, times)
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            return [error] * len(asked)
        numbers = {record["number"] for record in records}
        return [number in numbers for number in range(1, len(asked) + 1)]

    async def _outcomes(self, lists: Sequence[Sequence[Write]]) -> Sequence[_Outcome]:
        """Return the effects of each list or its error; if the transaction fails, all fail."""
        try:
            return await self._write_lists(lists)
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            if len(lists) > 1 and isinstance(error.__cause__, INVALID_VALUE_ERRORS):
                return [(await self._outcomes([writes]))[0] for writes in lists]
            return [error] * len(lists)

    async def _write_lists(self, lists: Sequence[Sequence[Write]]) -> list[list[bool]]:
        async with self._pool.acquire() as connection:
            async with connection.transaction():
                locked = await self._lock_organisation(connection)
                if locked["day"] != self._day:
                    await create_partition(connection, locked["day"])
                effects = await PostgresWrites(connection, self._organisation, locked).apply(lists)
            if any(isinstance(write, ForgetSessions) for writes in lists for write in writes):
                await self._drop_partitions(connection)
        self._day = locked["day"]
        return effects

    async def _lock_organisation(self, connection: Connection) -> Any:
        """Lock the organisation until the end of the transaction; the first write adds it."""
        locked = await connection.fetchrow(sql.LOCK_ORGANISATION, self._organisation)
        if locked is None:
            await connection.execute(sql.ADD_ORGANISATION, self._organisation)
            locked = await connection.fetchrow(sql.LOCK_ORGANISATION, self._organisation)
        return locked

    async def _drop_partitions(self, connection: Connection) -> None:
        """Drop the partitions that are not used; if that fails, the next deletion tries again."""
        try:
            await drop_unused_partitions(connection)
        except DATABASE_ERRORS as error:
            LOGGER.warning("%s: cannot drop old calls: %s", self._pool.place, error)

    def _check_open(self) -> None:
        if not (self._open and self._pool.is_open):
            raise StoreFailed(self._pool.place, "the store was closed")
