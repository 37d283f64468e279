"""The store on a SQLite file: a thread that writes, one that reads, and what is done at once."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, TypeVarTuple, cast

from brimline.inbox import Message
from brimline.store.base import Write
from brimline.store.failures import StoreFailed
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow
from brimline.store.sqlite import queries as query
from brimline.store.sqlite.desk import Desk
from brimline.store.sqlite.near import Near, never_wait
from brimline.store.sqlite.place import connect, failed, prepare
from brimline.store.sqlite.quiet import Quiet, may_queue
from brimline.store.sqlite.writer import Writer

TOGETHER = 64
"""So many lists, at most, are one transaction."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Ask: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
"""A query and its values."""


class SqliteStore:
    """Everything in one file, also for several processes at once; made by `SqliteStore.open`."""

    def __init__(
        self,
        path: Path,
        writing: sqlite3.Connection,
        reading: sqlite3.Connection,
        near: sqlite3.Connection,
    ) -> None:
        writer = Writer(path, writing)
        self._path = path
        self._open = True
        self._writer = Desk[Sequence[Write], list[bool]](
            "brimline-store-writes",
            writer.together,
            partial(_close, near, writing),
            TOGETHER,
        )
        self._near = Near(near)
        self._quiet = Quiet(self._near.version)
        self._reader = Desk[Ask, Any](
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
        if not writes:
            return []
        queues = may_queue(writes)
        if queues:
            self._quiet.forget()
        try:
            # What was handed to the thread before comes first.
            effects = self._near.write(writes) if self._writer.idle else None
            return await self._writer.ask(writes) if effects is None else effects
        finally:
            if queues:  # what was read meanwhile did not see them yet
                self._quiet.forget()

    async def sessions(self) -> list[SessionRow]:
        """Every session, the last seen first."""
        return await self._read(query.SESSIONS)

    async def session(self, id: str) -> SessionRow | None:
        """One session."""
        rows = await self._glance(query.SESSION, id)
        return rows[0] if rows else None

    async def threads(self, session: str | None = None) -> list[ThreadRow]:
        """The threads of a session, or of all."""
        return await (self._glance if session else self._read)(query.THREADS, session)

    async def calls(self, session: str, thread: str | None = None) -> list[CallRow]:
        """The calls of a session, by thread, in their order."""
        if thread is None:
            return await self._read(query.CALLS, session)
        return await self._read(query.CALLS_OF_THREAD, session, thread)

    async def compactions(self, session: str | None = None) -> list[CompactionRow]:
        """The compactions of a session, or of all: by session and thread, in their order."""
        return await self._read(query.COMPACTIONS, session)

    async def signals(self, session: str | None = None) -> list[SignalRow]:
        """What was said, in the order in which it was."""
        return await self._read(query.SIGNALS, session)

    async def messages(self, session: str | None = None) -> list[Message]:
        """Messages in their order, whatever became of them."""
        return await self._read(query.MESSAGES, session)

    async def waiting(self, session: str | None = None) -> list[Message]:
        """Messages that are queued, or handed and not known to be delivered, in their order."""
        if session is None:
            return await self._read(query.WAITING, session)
        era = self._quiet.era()
        found = await self._glance(query.WAITING, session)
        if not found:
            self._quiet.learn(session, era)
        return found

    def may_wait(self, session: str) -> bool:
        """Whether a message may wait for a session, as far as is known without the file."""
        return not self._quiet.knows(session)

    async def last_handoffs(self, session: str | None = None) -> list[HandoffRow]:
        """The last document of a session, or of each, the last one first; without its text."""
        if session is None:
            return await self._read(query.LAST_HANDOFFS)
        return await self._glance(query.LAST_HANDOFF, session)

    async def handoffs(self, session: str) -> list[HandoffRow]:
        """A session's documents, the last one first."""
        return await self._read(query.HANDOFFS, session)

    async def known(self, key: str) -> bool:
        """Whether an event was brought, by the key of its `Once`."""
        return await self._glance(query.known, key)

    async def changes(self, after: int = 0) -> list[tuple[int, str]]:
        """The sessions that changed since a mark, each with the mark of its last change."""
        return await self._read(query.changes, after)

    async def close(self) -> None:
        """Finish what is under way, and let go of the file; a second time does nothing."""
        if self._open:
            self._open = False
            await self._reader.close()
            await self._writer.close()

    async def _glance(self, query: Callable[[sqlite3.Connection, *Ts], T], *values: *Ts) -> T:
        """What a query gives that reads little."""
        self._check()
        found = self._near.read(query, *values)
        return await self._read(query, *values) if found is None else found

    async def _read(self, query: Callable[[sqlite3.Connection, *Ts], T], *values: *Ts) -> T:
        self._check()
        return cast("T", await self._reader.ask((query, values)))

    def _check(self) -> None:
        if not self._open:
            raise StoreFailed(str(self._path), "the store was closed")


def _connections(path: Path) -> tuple[sqlite3.Connection, sqlite3.Connection, sqlite3.Connection]:
    """What writes, what reads, and what does a little of both."""
    prepare(path)
    with ExitStack() as opened:
        try:
            writing = opened.enter_context(closing(connect(path)))
            reading = opened.enter_context(closing(connect(path)))
            reading.execute("PRAGMA query_only = ON")
            near = opened.enter_context(closing(connect(path)))
            never_wait(near)
        except sqlite3.Error as error:
            raise failed(path, error) from error
        opened.pop_all()
    return writing, reading, near


def _close(*connections: sqlite3.Connection) -> None:
    for connection in connections:
        connection.close()


def _answers(
    path: Path, connection: sqlite3.Connection, asks: Sequence[Ask]
) -> list[Any | Exception]:
    try:
        return [query(connection, *values) for query, values in asks]
    except sqlite3.Error as error:
        return [failed(path, error) for _ in asks]
