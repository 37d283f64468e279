"""Removes what a person or a machine has reported to an organisation."""

import msgspec

from brimline.store.postgres import statements as sql
from brimline.store.postgres.pool import ConnectionPool
from brimline.store.postgres.statements import storable

_WHO = '($2::text IS NULL OR "user" = $2) AND ($3::text IS NULL OR machine = $3)'
_SESSIONS = f"SELECT id FROM sessions WHERE organisation = $1 AND {_WHO}"
_CALLS = """WITH gone AS (
    DELETE FROM calls WHERE organisation = $1 AND session = ANY($2::text[]) RETURNING 1
) SELECT count(*) FROM gone"""
# The days of sessions that are forgotten already have their user, but no machine.
_DAYS = """WITH gone AS (
    DELETE FROM session_days WHERE organisation = $1
        AND (session = ANY($2::text[]) OR ($4::text IS NULL AND "user" = $3)) RETURNING 1
) SELECT count(*) FROM gone"""
_MACHINES = f"""WITH gone AS (
    DELETE FROM machines WHERE organisation = $1 AND {_WHO.replace("machine", "id")} RETURNING id
), stamps AS (
    DELETE FROM cursors WHERE organisation = $1 AND name IN (SELECT 'machine ' || id FROM gone)
) SELECT count(*) FROM gone"""


class ErasedRows(msgspec.Struct, frozen=True):
    """How much was removed: `days` are the sums of a session on a day."""

    sessions: int
    calls: int
    days: int
    machines: int


class Erasure:
    """Removes the rows of one organisation."""

    def __init__(self, pool: ConnectionPool, organisation: str) -> None:
        self._pool, self._organisation = pool, organisation

    async def erase(
        self, user: str | None, machine: str | None, dry_run: bool = False
    ) -> ErasedRows:
        """Remove what is of both, each if it is not None; a dry run removes nothing."""
        assert user is not None or machine is not None
        who = [None if name is None else storable(name) for name in (user, machine)]
        async with self._pool.acquire() as connection:
            transaction = connection.transaction()
            await transaction.start()
            try:
                await connection.fetchrow(sql.LOCK_ORGANISATION, self._organisation)
                records = await connection.fetch(_SESSIONS, self._organisation, *who)
                ids = [record["id"] for record in records]
                for statement in (*sql.FORGET_SESSIONS, sql.FORGET_CALL_DAYS):
                    await connection.execute(statement, self._organisation, ids)
                erased = ErasedRows(
                    len(ids),
                    await connection.fetchval(_CALLS, self._organisation, ids),
                    await connection.fetchval(_DAYS, self._organisation, ids, *who),
                    await connection.fetchval(_MACHINES, self._organisation, *who),
                )
            except BaseException:
                await transaction.rollback()
                raise
            await (transaction.rollback() if dry_run else transaction.commit())
        return erased
