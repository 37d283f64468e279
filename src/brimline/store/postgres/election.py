"""Which of the processes that share a database does a task: the one that holds its lock."""

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress

import asyncpg

from brimline.store.postgres.migrations import Connection

CONNECTION_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # if PostgreSQL has just ended the connection (asyncpg 0.32)
    OSError,
)
TRY_LOCK = "SELECT pg_try_advisory_lock($1)"

Acquire = Callable[[], AbstractAsyncContextManager[Connection]]


class Election:
    """Locks of tasks, on one connection: PostgreSQL frees them if the process or it ends."""

    def __init__(self, acquire: Acquire) -> None:
        self._acquire = acquire
        self._stack = AsyncExitStack()
        self._connection: Connection | None = None
        self._held: set[str] = set()
        self._lock = asyncio.Lock()

    async def is_elected(self, task: str) -> bool:
        """Return whether this process does a task now; raises StoreFailed.

        If the connection is lost, it does not: another process may do it already.
        """
        async with self._lock:
            try:
                return await self._try_lock(task)
            except CONNECTION_ERRORS:
                await self._release()
                return False
            except BaseException:
                await self._release()
                raise

    async def close(self) -> None:
        """Give all tasks up, so that another process can take them over at once."""
        async with self._lock:
            await self._release()

    async def _try_lock(self, task: str) -> bool:
        if self._connection is None:
            self._connection = await self._stack.enter_async_context(self._acquire())
        if task in self._held:
            await self._connection.execute("SELECT")  # fails if the lock is lost
            return True
        is_held = bool(await self._connection.fetchval(TRY_LOCK, _lock_key(task)))
        if is_held:
            self._held.add(task)
        return is_held

    async def _release(self) -> None:
        connection, self._connection = self._connection, None
        self._held.clear()
        try:
            if connection is not None:
                with suppress(*CONNECTION_ERRORS):  # then the locks are free already
                    await connection.execute("SELECT pg_advisory_unlock_all()")
        finally:
            await self._stack.aclose()


def _lock_key(task: str) -> int:
    digest = hashlib.sha256(task.encode()).digest()
    return int.from_bytes(digest[:8], signed=True)
