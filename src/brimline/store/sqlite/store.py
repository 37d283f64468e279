"""The store on a SQLite file: a thread that writes, and one that reads."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from brimline.inbox import Message
from brimline.store.base import CallRow, HandoffRow, SessionRow, SignalRow, ThreadRow, Write
from brimline.store.failures import StoreFailed
from brimline.store.sqlite import statements as sql
from brimline.store.sqlite.desk import Desk
from brimline.store.sqlite.place import connect, failed, prepare
from brimline.store.sqlite.statements import RowT, Table
from brimline.store.sqlite.writer import Writer

TOGETHER = 64
"""So many lists, at most, are one transaction."""

T = TypeVar("T")
Query = Callable[[sqlite3.Connection], Any]


class SqliteStore:
    """Everything in one file, also for several processes at once; made by `SqliteStore.open`."""

    def __init__(
        self, path: Path, writing: sqlite3.Connection, reading: sqlite3.Connection
    ) -> None:
        writer = Writer(path, writing)
        self._path = path
        self._open = True
        self._writer = Desk[Sequence[Write], list[bool]](
            "brimline-store-writes", writer.together, writer.close, TOGETHER
        )
        self._reader = Desk[Query, Any](
            "brimline-store-reads", partial(_answers, path, reading), reading.close
        )

    @classmethod
    async def open(cls, path: Path) -> "SqliteStore":
        """The store in a file, made where there is none, brought to this version where it is older.

        A broken file is put aside, with a warning, and a new one begun. NewerStore where a newer
        Brimline has written it; StoreFailed where it cannot be used.
        """
        return cls(path, *await asyncio.to_thread(_connections, path))

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        """Carry these out; what others write meanwhile may share the transaction."""
        self._check()
        return await self._writer.ask(writes) if writes else []

    async def sessions(self) -> list[SessionRow]:
        """Every session, the last seen first."""
        return await self._rows(sql.SESSIONS, "ORDER BY seen_at DESC, id")

    async def session(self, id: str) -> SessionRow | None:
        """One session."""
        rows = await self._rows(sql.SESSIONS, "", id=id)
        return rows[0] if rows else None

    async def threads(self, session: str | None = None) -> list[ThreadRow]:
        """The threads of a session, or of all."""
        return await self._rows(sql.THREADS, "ORDER BY session, thread", session=session)

    async def calls(self, session: str, thread: str | None = None) -> list[CallRow]:
        """The calls of a session, by thread, in their order."""
        order = "ORDER BY thread, cycle, seq, call"
        return await self._rows(sql.CALLS, order, session=session, thread=thread)

    async def signals(self, session: str | None = None) -> list[SignalRow]:
        """What was said, in the order in which it was."""
        return await self._rows(sql.SIGNALS, "ORDER BY place", session=session)

    async def messages(self, session: str | None = None) -> list[Message]:
        """Messages in their order, whatever became of them."""
        return await self._rows(sql.MESSAGES, 'ORDER BY "order"', session=session)

    async def handoffs(self, session: str) -> list[HandoffRow]:
        """A session's documents, the last one first."""
        rows = await self._rows(sql.HANDOFFS, "ORDER BY place DESC", session=session)
        # SQLite has no booleans of its own.
        return [msgspec.structs.replace(row, draft=bool(row.draft)) for row in rows]

    async def changes(self, after: int = 0) -> list[tuple[int, str]]:
        """The sessions that changed since a mark, each with the mark of its last change."""
        return await self._read(lambda reading: reading.execute(sql.CHANGES, (after,)).fetchall())

    async def close(self) -> None:
        """Finish what is under way, and let go of the file; a second time does nothing."""
        if self._open:
            self._open = False
            await self._reader.close()
            await self._writer.close()

    async def _rows(self, table: Table[RowT], order: str, **wanted: str | None) -> list[RowT]:
        return await self._read(partial(_select, table, order, wanted))

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        self._check()
        return cast("T", await self._reader.ask(query))

    def _check(self) -> None:
        if not self._open:
            raise StoreFailed(str(self._path), "the store was closed")


def _connections(path: Path) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """What writes, and what reads."""
    prepare(path)
    with ExitStack() as opened:
        try:
            writing = opened.enter_context(closing(connect(path)))
            reading = opened.enter_context(closing(connect(path)))
            reading.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise failed(path, error) from error
        opened.pop_all()
    return writing, reading


def _answers(
    path: Path, connection: sqlite3.Connection, queries: Sequence[Query]
) -> list[Any | Exception]:
    try:
        return [query(connection) for query in queries]
    except sqlite3.Error as error:
        return [failed(path, error) for _ in queries]


def _select(
    table: Table[RowT], order: str, wanted: dict[str, str | None], connection: sqlite3.Connection
) -> list[RowT]:
    """The rows that are as wanted; None wants any."""
    asked = {column: value for column, value in wanted.items() if value is not None}
    where = " AND ".join(f"{column} = ?" for column in asked)
    condition = f"WHERE {where}" if where else ""
    rows = connection.execute(f"{table.select} {condition} {order}", tuple(asked.values()))
    return [table.kind(*row) for row in rows]
