"""A fleet's database: the stores of its organisations, its tokens and its audit log."""

from collections.abc import Callable, Iterable

from brimline.store.fleet import FillLevels, SessionKind
from brimline.store.postgres.audit import AuditLog
from brimline.store.postgres.erasure import Erasure
from brimline.store.postgres.fleet import FleetFigures
from brimline.store.postgres.machines import MachineTable
from brimline.store.postgres.pool import ConnectionPool
from brimline.store.postgres.session_sums import SessionSums
from brimline.store.postgres.store import PostgresStore
from brimline.store.postgres.tokens import TokenTable


class PostgresDatabase:
    """A PostgreSQL database with one pool of connections; `PostgresDatabase.open` opens it."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self.tokens = TokenTable(pool)
        self.audit = AuditLog(pool)
        self._pools: dict[str, ConnectionPool] = {}  # by organisation

    @classmethod
    async def open(cls, url: str) -> "PostgresDatabase":
        """Open a database; it is migrated to this version.

        Raises NewerStore if a newer Brimline has migrated it, StoreFailed if it cannot be used.
        """
        return cls(await ConnectionPool.open(url))

    def store(self, organisation: str) -> PostgresStore:
        """Return a store of an organisation, which its first write adds to the database.

        Closing the store finishes its writes; the connections stay open for the others.
        """
        return PostgresStore(self._pool_of(organisation), organisation)

    def figures(
        self,
        organisation: str,
        levels_of: Callable[[SessionKind], FillLevels],
        named: Iterable[str] = (),
    ) -> FleetFigures:
        """Return the figures of an organisation's sessions, by the levels of their kinds."""
        return FleetFigures(self._pool_of(organisation), organisation, levels_of, named)

    def session_sums(self, organisation: str) -> SessionSums:
        """Return the sums of an organisation's sessions by hour and day."""
        return SessionSums(self._pool_of(organisation), organisation)

    def machines(self, organisation: str) -> MachineTable:
        """Return the machines that report to an organisation."""
        return MachineTable(self._pool_of(organisation), organisation)

    def erasure(self, organisation: str) -> Erasure:
        """Return what removes the rows of people and machines of an organisation."""
        return Erasure(self._pool_of(organisation), organisation)

    def _pool_of(self, organisation: str) -> ConnectionPool:
        if organisation not in self._pools:
            self._pools[organisation] = self._pool.for_organisation()
        return self._pools[organisation]

    async def now(self) -> float:
        """Return the time by the database's clock."""
        records = await self._pool.fetch("SELECT extract(epoch FROM now())::float8 AS now")
        return records[0]["now"]

    async def organisations(self) -> list[str]:
        """Return the organisations that have stored something."""
        records = await self._pool.fetch("SELECT name FROM organisations ORDER BY name")
        return [record["name"] for record in records]

    async def close(self) -> None:
        """Close the connections; the stores are to be closed first."""
        await self._pool.close()
