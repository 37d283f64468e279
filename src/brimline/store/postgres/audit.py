"""The audit log: what people, programs and administrators did."""

import msgspec

from brimline.store.postgres.pool import ConnectionPool
from brimline.store.postgres.statements import storable

KEEP_AUDIT_S = 400 * 24 * 3_600.0  # longer than a year: entries are deleted after this


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

    def values(self) -> list[object]:
        """Return the values of APPEND."""
        return [storable(value) for value in msgspec.structs.astuple(self)[:-1]]


APPEND = """INSERT INTO audit_log (organisation, at, actor, action, session, subject)
VALUES ($1, $2, $3, $4, $5, $6)"""
_LIST = """SELECT organisation, at, actor, action, session, subject, place FROM audit_log
WHERE organisation = $1 AND ($2::bigint IS NULL OR place < $2) ORDER BY place DESC LIMIT $3"""
_PRUNE = "DELETE FROM audit_log WHERE at < $1"


class AuditLog:
    """The audit logs of all organisations."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool

    async def append(self, row: AuditRow) -> None:
        await self._pool.fetch(APPEND, *row.values())

    async def prune(self, now: float) -> None:
        """Delete the rows of all organisations that are older than KEEP_AUDIT_S."""
        await self._pool.fetch(_PRUNE, now - KEEP_AUDIT_S)

    async def list(
        self, organisation: str, limit: int = 100, before: int | None = None
    ) -> list[AuditRow]:
        """Return the rows of an organisation, the newest first; `before` is the place of a row."""
        records = await self._pool.fetch(_LIST, organisation, before, limit)
        return [AuditRow(*record) for record in records]
