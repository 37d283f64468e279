"""The store of a fleet: a PostgreSQL database, which several servers and organisations share."""

from typing import TYPE_CHECKING

from brimline.store.failures import StoreFailed

if TYPE_CHECKING:
    from brimline.store.postgres.store import PostgresStore

DEFAULT_ORGANISATION = "default"


async def open_postgres(url: str, organisation: str = DEFAULT_ORGANISATION) -> "PostgresStore":
    """Open the store of an organisation; raises StoreFailed, also if asyncpg is not installed."""
    try:
        from brimline.store.postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        hint = "Install it with `pip install 'brimline[fleet]'`."
        raise StoreFailed("PostgreSQL", "the package asyncpg is not installed", hint) from error
    return await PostgresStore.open(url, organisation)
