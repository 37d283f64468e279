"""The connections to a PostgreSQL database, which all organisations and replicas share."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg

from brimline.errors import StoreFailed
from brimline.store.postgres.migrations import Connection, migrate

MAX_CONNECTIONS = 8
MAX_ORGANISATION_CONNECTIONS = 6  # one with slow queries leaves two to the others
CONNECT_TIMEOUT_S = 10.0
STATEMENT_TIMEOUT_S = 60.0

# The URL can have others. A replica that stops answering while it has the lock of its organisation
# loses it after 10 s.
SERVER_SETTINGS = {
    "application_name": "brimline",
    "idle_in_transaction_session_timeout": "10s",
    "jit": "off",  # it takes longer to compile the fleet view's queries than to run them
    "lock_timeout": "20s",
    # The default is that of a turning disk. With it, the fleet view's query of a day's sessions
    # reads the main threads of all that are kept, if these are 50 times as many.
    "random_page_cost": "1.1",
}

# PgBouncer refuses parameters of a connection by default. In its transaction mode, each transaction
# may have another connection to PostgreSQL: settings and prepared statements are those of one.
REFUSED_PARAMETER = "unsupported startup parameter"
LOCAL_SETTINGS = "".join(
    f"SET LOCAL {name} = '{value}';"
    for name, value in SERVER_SETTINGS.items()
    if name != "application_name"
)

NO_IDLE_TIMEOUT = "SET LOCAL idle_in_transaction_session_timeout = 0"

CONNECTION_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # if PostgreSQL has just ended the connection (asyncpg 0.32)
    OSError,
)
# PostgreSQL or asyncpg refuses a value, for example a key that is too long for an index: only its
# own list fails.
INVALID_VALUE_ERRORS = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    ValueError,
)
DATABASE_ERRORS = (*CONNECTION_ERRORS, ValueError)

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


class ConnectionPool:
    """Connections to a migrated database; their errors are raised as StoreFailed.

    `place` names the database in messages. `is_pooled` if PgBouncer is in front of it: then all is
    done in transactions.
    """

    def __init__(
        self,
        place: str,
        pool: "asyncpg.Pool[asyncpg.Record]",
        max_connections: int = MAX_CONNECTIONS,
        election: Election | None = None,
        is_pooled: bool = False,
    ) -> None:
        self.place, self._is_pooled = place, is_pooled
        self._pool = pool
        self._slots = asyncio.Semaphore(max_connections)
        self.election = election or Election(partial(self.acquire, holds=True))

    @property
    def is_open(self) -> bool:
        return not self._pool.is_closing()

    def for_organisation(self) -> "ConnectionPool":
        """Return the same connections for one organisation, which leaves some to the others.

        They can send requests even if all queries of this one hang.
        """
        most = MAX_ORGANISATION_CONNECTIONS
        return ConnectionPool(self.place, self._pool, most, self.election, self._is_pooled)

    @classmethod
    async def open(cls, url: str) -> "ConnectionPool":
        """Connect to a database and migrate it to this version.

        Raises NewerStore if a newer Brimline has migrated it, StoreFailed if it cannot be used.
        """
        place = _place(url)
        async with _translated_errors(place):
            try:
                pool = await _connect(url, server_settings=_server_settings(url))
                is_pooled = False
            except asyncpg.ProtocolViolationError as error:
                if REFUSED_PARAMETER not in str(error):
                    raise
                pool = await _connect(url, statement_cache_size=0)
                is_pooled = True
            try:
                async with pool.acquire() as connection:
                    await migrate(connection, place)
            except BaseException:
                pool.terminate()
                raise
        return cls(place, pool, is_pooled=is_pooled)

    @asynccontextmanager
    async def acquire(self, holds: bool = False) -> AsyncGenerator[Connection, None]:
        """Yield a connection; with `holds`, it stays the same between transactions."""
        async with (
            self._slots,
            _translated_errors(self.place),
            self._pool.acquire() as connection,
            connection.transaction() if self._is_pooled else nullcontext(),
        ):
            if self._is_pooled:
                await connection.execute(LOCAL_SETTINGS + (NO_IDLE_TIMEOUT if holds else ""))
            yield connection

    async def fetch(self, text: str, *values: Any) -> Sequence[Any]:
        """Execute a statement on any connection and return its rows."""
        if self._is_pooled:
            async with self.acquire() as connection:
                return await connection.fetch(text, *values)
        async with self._slots, _translated_errors(self.place):
            return await self._pool.fetch(text, *values)

    async def close(self) -> None:
        """Wait for the work under way and close the connections; a second time does nothing."""
        if self.is_open:
            await self.election.close()
            async with _translated_errors(self.place):
                await self._pool.close()


async def _connect(url: str, **options: Any) -> "asyncpg.Pool[asyncpg.Record]":
    """Return a pool that has connected once.

    It keeps no connection open by force: while a database is down, asyncpg would try again and
    again to reach a minimum, each time with a traceback in the log.
    """
    pool = await asyncpg.create_pool(
        url,
        min_size=0,
        max_size=MAX_CONNECTIONS,
        timeout=CONNECT_TIMEOUT_S,
        command_timeout=STATEMENT_TIMEOUT_S,
        reset=_keep_session,
        **options,
    )
    try:
        async with pool.acquire():
            return pool
    except BaseException:
        pool.terminate()
        raise


async def _keep_session(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Leave a connection that is released as it is; asyncpg ends its transaction before.

    The default statement resets what a session may have set, which ours do not: one more exchange
    for each query, a quarter of the CPU time of PostgreSQL for a small batch.
    """


@asynccontextmanager
async def _translated_errors(place: str) -> AsyncGenerator[None, None]:
    """Raise StoreFailed for an error of the database or of a connection to it."""
    try:
        yield
    except INVALID_VALUE_ERRORS as error:
        raise StoreFailed(place, str(error)) from error
    except asyncpg.LockNotAvailableError as error:
        hint = "Nothing was written: another process keeps the database locked."
        raise StoreFailed(place, str(error), hint) from error
    except DATABASE_ERRORS as error:
        hint = "Make sure that PostgreSQL runs there, and that this user may use the database."
        reason = " ".join(str(error).split()) or type(error).__name__
        raise StoreFailed(place, reason, hint) from error


def _server_settings(url: str) -> dict[str, str]:
    """Return our settings of a connection, without those that the URL has itself."""
    own = parse_qs(urlsplit(url).query)
    return {name: value for name, value in SERVER_SETTINGS.items() if name not in own}


def _place(url: str) -> str:
    """Return what names the database in messages, without a password."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "PostgreSQL"
    if "@" in parts.path:  # the password has a slash, so that these parts are wrong
        return "PostgreSQL"
    return f"postgresql://{parts.hostname or ''}{port}{parts.path}"
