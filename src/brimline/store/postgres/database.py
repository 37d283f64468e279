"""A fleet's database: the stores of its organisations, its tokens and its audit log."""

from collections.abc import Callable, Iterable

import msgspec

from brimline.store.common_sql import list_columns
from brimline.store.fleet import FillLevels, SessionKind
from brimline.store.postgres.erasure import Erasure
from brimline.store.postgres.fleet import FleetFigures
from brimline.store.postgres.machines import MachineTable
from brimline.store.postgres.pool import ConnectionPool
from brimline.store.postgres.session_sums import SessionSums
from brimline.store.postgres.statements import storable
from brimline.store.postgres.store import PostgresStore

KEEP_AUDIT_S = 400 * 24 * 3_600.0  # longer than a year: entries are deleted after this

TOUCH_EVERY_S = 60.0  # `last_used_at` is written again after this


class TokenRow(msgspec.Struct, frozen=True):
    """A token of an organisation, by its id; `hash` is the SHA-256 of its text, in hex.

    `parent` is the token that a person has signed in with: when it is revoked, so is this one.
    """

    organisation: str
    id: str
    hash: str
    name: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    last_used_at: float | None = None
    parent: str | None = None

    def is_valid(self, at: float) -> bool:
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)


_COLUMNS = list_columns(TokenRow.__struct_fields__)
# A token that is made from another while that one is being revoked is revoked too.
_REVOKED_AT = """coalesce(revoked_at, (SELECT p.revoked_at FROM tokens p
WHERE p.organisation = t.organisation AND p.id = t.parent)) AS revoked_at"""
_FIND_COLUMNS = _COLUMNS.replace('"revoked_at"', _REVOKED_AT)
_FIND = f"SELECT {_FIND_COLUMNS} FROM tokens t WHERE hash = $1"
_LIST = f"SELECT {_COLUMNS} FROM tokens WHERE organisation = $1 ORDER BY created_at DESC, id"
_INSERT = f"""INSERT INTO tokens ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT DO NOTHING RETURNING id"""
_REVOKE = """UPDATE tokens SET revoked_at = $3
WHERE organisation = $1 AND (id = $2 OR parent = $2) AND revoked_at IS NULL RETURNING id"""
_TOUCH = """UPDATE tokens SET last_used_at = $3
WHERE organisation = $1 AND id = $2 AND coalesce(last_used_at, 0) <= $3 - $4::float8"""
_PRUNE = "DELETE FROM tokens WHERE parent IS NOT NULL AND expires_at < $1"


class TokenTable:
    """The tokens of all organisations."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool

    async def insert(self, row: TokenRow) -> bool:
        """Store a token; return False if its id or its hash is stored already."""
        return bool(await self._pool.fetch(_INSERT, *map(storable, msgspec.structs.astuple(row))))

    async def find(self, hash: str) -> TokenRow | None:
        """Return the token with a hash, whether it is still valid or not."""
        records = await self._pool.fetch(_FIND, hash)
        return msgspec.convert(dict(records[0]), TokenRow) if records else None

    async def list(self, organisation: str) -> list[TokenRow]:
        """Return the tokens of an organisation, the newest first."""
        records = await self._pool.fetch(_LIST, organisation)
        return [msgspec.convert(dict(record), TokenRow) for record in records]

    async def revoke(self, organisation: str, id: str, at: float) -> bool:
        """Revoke a token and those that were made from it; return False if none was valid."""
        return bool(await self._pool.fetch(_REVOKE, organisation, id, at))

    async def touch(self, organisation: str, id: str, at: float) -> None:
        """Record that a token was used, at most once in TOUCH_EVERY_S."""
        await self._pool.fetch(_TOUCH, organisation, id, at, TOUCH_EVERY_S)

    async def prune(self, before: float) -> None:
        """Delete the tokens that were made from others and expired before a time."""
        await self._pool.fetch(_PRUNE, before)


class AuditRow(msgspec.Struct, frozen=True):
    """Something that a person or a program did; `subject` is the id of a message or a handoff.

    `place` grows with each row; the database assigns it.
    """

    organisation: str
    at: float
    actor: str
    action: str
    session: str | None = None
    subject: str | None = None
    place: int = 0


_APPEND_AUDIT = """INSERT INTO audit_log (organisation, at, actor, action, session, subject)
VALUES ($1, $2, $3, $4, $5, $6)"""
_LIST_AUDIT = """SELECT organisation, at, actor, action, session, subject, place FROM audit_log
WHERE organisation = $1 AND ($2::bigint IS NULL OR place < $2) ORDER BY place DESC LIMIT $3"""
_PRUNE_AUDIT = "DELETE FROM audit_log WHERE at < $1"


class AuditLog:
    """The audit logs of all organisations."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool

    async def append(self, row: AuditRow) -> None:
        await self._pool.fetch(_APPEND_AUDIT, *map(storable, msgspec.structs.astuple(row)[:-1]))

    async def prune(self, now: float) -> None:
        """Delete the rows of all organisations that are older than KEEP_AUDIT_S."""
        await self._pool.fetch(_PRUNE_AUDIT, now - KEEP_AUDIT_S)

    async def list(
        self, organisation: str, limit: int = 100, before: int | None = None
    ) -> list[AuditRow]:
        """Return the rows of an organisation, the newest first; `before` is the place of a row."""
        records = await self._pool.fetch(_LIST_AUDIT, organisation, before, limit)
        return [AuditRow(*record) for record in records]


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
