"""Opens a fleet's database for a command of whoever runs its server."""

import asyncio
from collections.abc import Awaitable, Callable
from getpass import getuser
from typing import TYPE_CHECKING, TypeVar

from brimline.cli.context import CommandContext
from brimline.errors import InvalidRequest, InvalidSettings
from brimline.sessions.files import MIN_SHORT_ID_CHARS
from brimline.store.postgres import open_database

if TYPE_CHECKING:
    from brimline.store.postgres.database import PostgresDatabase

ResultT = TypeVar("ResultT")

MAX_LISTED = 100_000  # machines of an organisation
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


async def find_machine(database: "PostgresDatabase", organisation: str, text: str) -> str:
    """Return the id that begins with a text, as `fleet machines` shows it, or else the text.

    Raises InvalidRequest if there are several.
    """
    reporting = await database.machines(organisation).list(MAX_LISTED)
    ids = {each.report.id for each in reporting}
    ids |= {row.machine for row in await database.tokens.list(organisation) if row.machine}
    if text in ids or len(text) < MIN_SHORT_ID_CHARS:
        return text
    matches = [id for id in ids if id.startswith(text)]
    if len(matches) > 1:
        reason = f"{text!r} begins the ids of {len(matches):,} machines"
        raise InvalidRequest(reason, "Pass more of the id.")
    return matches[0] if matches else text


def account_name() -> str:
    """Return who runs this command, as the audit log names them."""
    try:
        return f"{getuser()} (database)"
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown (database)"
