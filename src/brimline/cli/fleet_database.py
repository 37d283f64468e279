"""Opens a fleet's database for a command of whoever runs its server."""

import asyncio
from collections.abc import Awaitable, Callable
from getpass import getuser
from typing import TYPE_CHECKING, TypeVar

from brimline.cli.context import CommandContext
from brimline.errors import InvalidSettings
from brimline.store.postgres import open_database

if TYPE_CHECKING:
    from brimline.store.postgres.database import PostgresDatabase

ResultT = TypeVar("ResultT")

DATABASE_HELP = "the fleet's PostgreSQL database (default BRIMLINE_DATABASE)"


def use_database(
    context: CommandContext, use: "Callable[[PostgresDatabase], Awaitable[ResultT]]"
) -> ResultT:
    """Open the database of the settings for one request."""
    url = context.settings.daemon.database
    if url is None:
        reason = "missing: pass the URL of the fleet's PostgreSQL, or set BRIMLINE_DATABASE"
        raise InvalidSettings("argument", "--database", reason)

    async def request(url: str) -> ResultT:
        database = await open_database(url)
        try:
            return await use(database)
        finally:
            await database.close()

    return asyncio.run(request(url))


def account_name() -> str:
    """Return who runs this command, as the audit log names them."""
    try:
        return f"{getuser()} (database)"
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown (database)"
