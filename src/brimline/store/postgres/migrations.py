"""Migrates a database to the newest version of the schema when it is opened."""

from collections.abc import Sequence
from typing import TypeAlias

from asyncpg import Record
from asyncpg.pool import PoolConnectionProxy

from brimline.errors import NewerStore
from brimline.store.postgres.migration_steps import MIGRATIONS, Step

Connection: TypeAlias = "PoolConnectionProxy[Record]"

# Advisory locks of this database: one replica migrates, one changes the partitions of calls.
MIGRATION_LOCK, PARTITION_LOCK = 0x6272696D_01, 0x6272696D_02
MIGRATION_TIMEOUT_S = 86_400.0  # of a statement: an index of many calls takes its time

# The oldest version whose Brimline works with the newest schema: during an upgrade replicas of both
# serve. A step that only adds tables, indexes, and columns that an INSERT may leave out does not
# change it; with any other step it becomes the version of that step.
OLDEST_COMPATIBLE = 2


async def migrate(
    connection: Connection,
    place: str,
    steps: Sequence[Step] = MIGRATIONS,
    oldest_compatible: int = OLDEST_COMPATIBLE,
) -> None:
    """Migrate a database in one transaction; one that a newer Brimline has migrated stays as it is.

    Raises NewerStore if this version is not compatible with it. If several replicas try at once,
    the others wait and have nothing left to do.
    """
    async with connection.transaction():
        await connection.execute("SET LOCAL lock_timeout = 0")
        lock = "SELECT pg_advisory_xact_lock($1)"
        await connection.execute(lock, MIGRATION_LOCK, timeout=MIGRATION_TIMEOUT_S)
        await connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INT NOT NULL)")
        await connection.execute(
            "ALTER TABLE schema_version ADD COLUMN IF NOT EXISTS oldest_compatible INT"
        )
        stored = await connection.fetchrow("SELECT version, oldest_compatible FROM schema_version")
        version: int = stored["version"] if stored else 0
        if stored and version > len(steps):
            if len(steps) < (stored["oldest_compatible"] or version):
                raise NewerStore(place, version, len(steps))
            return
        for statement in (text for step in steps[version:] for text in step):
            await connection.execute(statement, timeout=MIGRATION_TIMEOUT_S)
        if version < len(steps):
            await connection.execute("DELETE FROM schema_version")
            await connection.execute(
                "INSERT INTO schema_version (version, oldest_compatible) VALUES ($1, $2)",
                len(steps),
                oldest_compatible,
            )
