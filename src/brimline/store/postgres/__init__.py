"""The store of a fleet: a PostgreSQL database, which several replicas and organisations share."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from brimline.errors import StoreFailed
from brimline.store.fleet import DEFAULT_ORGANISATION

if TYPE_CHECKING:
    from brimline.store.postgres.database import PostgresDatabase
    from brimline.store.postgres.store import PostgresStore


async def open_database(url: str) -> "PostgresDatabase":
    """Open a fleet's database; raises StoreFailed, also if asyncpg is not installed."""
    with translated_import_error():
        from brimline.store.postgres.database import PostgresDatabase
    return await PostgresDatabase.open(url)


async def open_postgres(url: str, organisation: str = DEFAULT_ORGANISATION) -> "PostgresStore":
    """Open the store of an organisation; raises StoreFailed, also if asyncpg is not installed."""
    with translated_import_error():
        from brimline.store.postgres.store import PostgresStore
    return await PostgresStore.open(url, organisation)


@contextmanager
def translated_import_error() -> Generator[None, None, None]:
    """Raise StoreFailed if asyncpg is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        hint = "Install it with `pip install 'brimline[fleet]'`."
        raise StoreFailed("PostgreSQL", "the package asyncpg is not installed", hint) from error
