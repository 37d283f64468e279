"""The store on a SQLite file, where one thread writes and one reads, and the one in memory."""

import asyncio
import logging
import sqlite3
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, TypeVarTuple, cast

from brimline.errors import StoreFailed
from brimline.store.base import Write
from brimline.store.batches import WorkerThread
from brimline.store.common_sql import Query, RowT, SqlQueries
from brimline.store.rows import CallRow, HandoffRow, SessionRow, SignalRow, ThreadRow
from brimline.store.sqlite import statements as sql
from brimline.store.sqlite.connections import (
    CHECK_BUDGET_S,
    DAMAGE_HINT,
    connect,
    connect_for_reading,
    is_damage,
    note_damage,
    prepare,
    store_failed,
)
from brimline.store.sqlite.database_file import DatabaseFile
from brimline.store.sqlite.integrity import check_pages, check_values, interrupted
from brimline.store.sqlite.migrations import migrate
from brimline.store.sqlite.writer import Writer

MEMORY = Path(":memory:")  # what SQLite calls a database without a file

MAX_BATCH = 64  # lists of writes in one transaction, and queries

WATCH_EVERY_S = 1.0
FIRST_CHECK_AFTER_S = 5.0  # after the daemon has read the transcripts at its start
CHECK_EVERY_S = 86_400.0

LOGGER = logging.getLogger("brimline.store")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
QueryJob: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]  # a query and its values


class SqliteQueries(SqlQueries):
    """The queries of a store on SQLite; `_read` decides where they run."""

    _queries = sql.QUERIES

    @abstractmethod
    async def _read(self, query: Callable[[sqlite3.Connection, *Ts], T], *values: *Ts) -> T: ...

    async def _select(self, query: Query[RowT], *values: str | float) -> list[RowT]:
        return await self._read(sql.select, query, values)

    async def main_threads(self, seen_since: float) -> list[tuple[SessionRow, ThreadRow]]:
        return await self._read(sql.main_threads, seen_since)

    async def calls_after(self, session: str, mark: int) -> list[CallRow]:
        """The calls of a session that changed after a mark of `changes`, in their order.

        With a mark of -1 all, also those of a file that an older version has written.
        """
        return await self._read(sql.calls_after, session, mark)

    async def copied_calls(self, session: str, calls: Sequence[str]) -> set[str]:
        return await self._read(sql.copied_calls, session, calls)

    async def signals_after(self, position: int, limit: int) -> list[tuple[int, SignalRow]]:
        return await self._read(sql.signals_after, position, limit)

    async def handoff_heads(self, session: str) -> list[HandoffRow]:
        """A session's documents in their order; their texts are left empty."""
        return await self._select(self._queries.handoff_heads, session)

    async def known_events(self, keys: Sequence[str]) -> set[str]:
        return await self._read(sql.known_events, keys)

    async def cursor(self, name: str) -> int:
        return await self._read(sql.cursor, name)

    async def revision(self, session: str) -> int:
        return await self._read(sql.revision, session)

    async def changes(self, after: int = 0, seen_since: float = 0.0) -> list[tuple[int, str]]:
        return await self._read(sql.changes, after, seen_since)


class SqliteStore(SqliteQueries):
    """A store in one file, which several processes may share; `SqliteStore.open` creates it."""

    def __init__(
        self,
        path: Path,
        writing: sqlite3.Connection,
        reading: sqlite3.Connection,
        file: DatabaseFile,
    ) -> None:
        writer = Writer(path, writing)
        self._path = path
        self._file = file
        self._damage: str | None = None
        self._check_stopped = threading.Event()
        self._content_check: asyncio.Future[None] | None = None
        self._open = True
        self._writer = WorkerThread[Sequence[Write], list[bool]](
            "brimline-store-writes", writer.write_all, partial(_close, file, writing), MAX_BATCH
        )
        self._reader = WorkerThread[QueryJob, Any](
            "brimline-store-reads", partial(_run_queries, path, reading), reading.close, MAX_BATCH
        )

    @classmethod
    async def open(cls, path: Path, check_budget_s: float = CHECK_BUDGET_S) -> "SqliteStore":
        """Open the store in a file; it is created if missing, and migrated to this version.

        A damaged file, and one of another program, is set aside and reported, and a new one is
        created; a large file is checked for at most `check_budget_s`. Raises
        NewerStore if a newer Brimline has written it, StoreFailed if it cannot be used.
        """
        return cls(path, *await asyncio.to_thread(_connections, path, check_budget_s))

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        """Apply the writes; those of other callers may share the transaction."""
        self._check_usable()
        return await self._writer.submit(writes) if writes else []

    def find_problem(self) -> str | None:
        """Return what happened to the open file, if anything; `close` then keeps its content.

        A file whose content is damaged is not written to any more.
        """
        finding = self._file.find_problem() if self._open else None
        if finding is None:
            return None
        if finding.kind == "damaged":
            self._damage = finding.reason
        return finding.reason

    async def check_content(self) -> None:
        """Check the whole file in a thread; `find_problem` then reports damage."""
        self._check_usable()
        work = asyncio.to_thread(_check_content, self._path, self._check_stopped)
        self._content_check = asyncio.ensure_future(work)
        await asyncio.shield(self._content_check)  # `close` ends it, and waits for it

    async def close(self) -> None:
        """Finish the work under way, and close the file; a second time does nothing.

        If the file is damaged or no longer in place, its content is kept, and that is reported.
        """
        if not self._open:
            return
        self._open = False
        self._check_stopped.set()
        if self._content_check is not None:
            await self._content_check
        await self._reader.close()
        await self._writer.close()

    async def _read(self, query: Callable[[sqlite3.Connection, *Ts], T], *values: *Ts) -> T:
        self._check_usable()
        return cast("T", await self._reader.submit((query, values)))

    def _check_usable(self) -> None:
        if not self._open:
            raise StoreFailed(str(self._path), "the store was closed")
        if self._damage is not None:
            raise StoreFailed(str(self._path), self._damage, DAMAGE_HINT)


class MemoryStore(SqliteQueries):
    """A store for tests and for a single run: a database in memory, used by the caller's thread.

    It may be created outside of an event loop, and need not be closed.
    """

    def __init__(self) -> None:
        self._connection = connect(MEMORY)
        self._close = weakref.finalize(self, self._connection.close)
        _empty_database().backup(self._connection)
        self._writer = Writer(MEMORY, self._connection)

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        (outcome,) = self._writer.write_all([writes])
        if isinstance(outcome, StoreFailed):
            raise outcome
        return outcome

    async def close(self) -> None:
        self._close()

    async def _read(self, query: Callable[[sqlite3.Connection, *Ts], T], *values: *Ts) -> T:
        (result,) = _run_queries(MEMORY, self._connection, [(query, values)])
        if isinstance(result, Exception):
            raise result
        return result


@cache
def _empty_database() -> sqlite3.Connection:
    """Return a migrated database to copy: the migrations take 12 ms, a copy 0.2 ms."""
    connection = connect(MEMORY)
    migrate(connection, str(MEMORY))
    return connection


def _connections(
    path: Path, check_budget_s: float
) -> tuple[sqlite3.Connection, sqlite3.Connection, DatabaseFile]:
    """Return the connection that writes, the one that reads, and the file."""
    prepare(path, check_budget_s)
    with ExitStack() as opened:
        try:
            writing = opened.enter_context(closing(connect(path)))
            reading = opened.enter_context(closing(connect(path)))
            reading.execute("PRAGMA query_only = ON")
            file = DatabaseFile(path)
        except sqlite3.Error as error:
            raise store_failed(path, error) from error
        except OSError as error:
            raise StoreFailed(str(path), error.strerror or str(error), DAMAGE_HINT) from error
        opened.pop_all()
    return writing, reading, file


def _close(file: DatabaseFile, writing: sqlite3.Connection) -> None:
    try:
        file.settle(writing)
    except OSError as error:
        LOGGER.warning("cannot keep the content of the store: %s", error)
    writing.close()
    file.close()


def _check_content(path: Path, stop: threading.Event) -> None:
    """Note damage that a check of the whole file detects; a file that is busy is not checked."""
    try:
        with closing(connect_for_reading(path)) as connection, interrupted(connection, stop):
            reason = check_pages(connection, "integrity_check") or check_values(connection)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if not is_damage(error):
            return
        reason = str(error)
    if reason is not None:
        note_damage(path, reason)


def _run_queries(
    path: Path, connection: sqlite3.Connection, jobs: Sequence[QueryJob]
) -> list[Any | Exception]:
    results: list[Any | Exception] = []
    for run, values in jobs:
        try:
            results.append(run(connection, *values))
        except (sqlite3.Error, UnicodeDecodeError) as error:
            results.append(store_failed(path, error))
    return results


class StoreWatch:
    """Calls `react` within seconds with what happened to the file.

    Damage inside the file is searched for soon after the start and once a day.
    """

    def __init__(
        self,
        store: SqliteStore,
        react: Callable[[str], None],
        first_check_after_s: float = FIRST_CHECK_AFTER_S,
    ) -> None:
        self._store, self._react = store, react
        self._first_check_after_s = first_check_after_s

    async def watch_file(self) -> None:
        """Look at the file every second until something happened to it."""
        while (reason := self._store.find_problem()) is None:
            await asyncio.sleep(WATCH_EVERY_S)
        self._react(reason)

    async def check_content(self) -> None:
        """Check the whole content regularly; damage is what `watch_file` sees from then on."""
        await asyncio.sleep(self._first_check_after_s)
        while True:
            await self._store.check_content()
            await asyncio.sleep(CHECK_EVERY_S)
