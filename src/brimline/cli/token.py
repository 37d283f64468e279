"""`brimline token`: the tokens that machines, telemetry and people show to a fleet's server."""

import argparse
import os
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from brimline.cli.arguments import add_json
from brimline.cli.context import CommandContext, emit_json, print_table
from brimline.cli.fleet_database import DATABASE_HELP, use_database
from brimline.errors import InvalidRequest, InvalidSettings
from brimline.settings import seconds
from brimline.store.fleet import DEFAULT_ORGANISATION
from brimline.store.postgres import translated_import_error
from brimline.terminal.text import Cell, Column, format_age, strip_control

if TYPE_CHECKING:
    from brimline.store.postgres.database import PostgresDatabase, TokenRow

USAGE = """brimline token create --name NAME --scope SCOPE ... [--expires SPAN]
           [--output FILE] [OPTIONS]
       brimline token list [OPTIONS]
       brimline token revoke ID [OPTIONS]"""
ACTIONS = ("create", "list", "revoke")
SCOPES = ("ingest", "read", "act")
DEFAULT_LIFETIME = "90d"
NEVER = "never"

COLUMNS = (
    Column("id", min_width=12),
    Column("name", min_width=8),
    Column("scopes", drop_order=3),
    Column("state", min_width=8),
    Column("created", right=True, drop_order=1),
    Column("used", right=True, drop_order=2),
)


class TokenShown(msgspec.Struct, frozen=True):
    """A token; `token` is its text, which only `create` shows, once. Times are in Unix seconds."""

    id: str
    name: str
    organisation: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    last_used_at: float | None
    token: str | None = None


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = USAGE
    help_text = "create, list or revoke"
    to.add_argument("action", choices=ACTIONS, metavar="ACTION", help=help_text)
    to.add_argument("id", nargs="?", metavar="ID", help="with revoke: the id of a token")
    help_text = "with create: its machine, team or person; messages and the audit log show it"
    to.add_argument("--name", help=help_text)
    help_text = (
        "with create, once or more: ingest (report sessions), read (see them), "
        "act (send messages and handoffs)"
    )
    to.add_argument("--scope", action="append", choices=SCOPES, metavar="SCOPE", help=help_text)
    help_text = (
        f"with create: how long it is valid; `{NEVER}` sets no end (default {DEFAULT_LIFETIME})"
    )
    to.add_argument("--expires", metavar="SPAN", default=DEFAULT_LIFETIME, help=help_text)
    help_text = "with create: write it into a new file that only you can read"
    to.add_argument("--output", metavar="FILE", help=help_text)
    help_text = f"the organisation of the tokens (default {DEFAULT_ORGANISATION!r})"
    to.add_argument("--organisation", metavar="NAME", default=DEFAULT_ORGANISATION, help=help_text)
    to.add_argument("--database", metavar="URL", help=DATABASE_HELP)
    add_json(to)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    if (options.id is not None) != (options.action == "revoke"):
        reason = "not allowed here" if options.id else "missing: `brimline token list` lists ids"
        raise InvalidSettings("argument", "ID", reason)
    if options.action == "create":
        return _create(context, options)
    if options.action == "list":
        return _list(context, options)
    return _revoke(context, options)


def _create(context: CommandContext, options: argparse.Namespace) -> int:
    with translated_import_error():
        from brimline.server.fleet.authentication import create_token
    name, now = (options.name or "").strip(), time.time()
    if not name:
        raise InvalidSettings("argument", "--name", "missing: name the machine, team or person")
    if not name.isprintable():
        raise InvalidSettings("argument", "--name", f"expected printable text: got {name!r}")
    if not options.scope:
        raise InvalidSettings("argument", "--scope", f"missing: one or more of {_list_scopes()}")
    lifetime_s = None if options.expires == NEVER else seconds(options.expires, "--expires")
    expires_at = None if lifetime_s is None else now + lifetime_s
    text, row = create_token(options.organisation, name, options.scope, now, expires_at)
    path: str | None = options.output
    file = None if path is None else _open_output(path)
    try:
        use_database(context, lambda database: database.tokens.insert(row))
    except BaseException:
        if file is not None and path is not None:  # a second try must not find it
            os.close(file)
            Path(path).unlink()
        raise
    if file is not None:
        with open(file, "w", encoding="ascii") as output:
            output.write(f"{text}\n")
    if options.json:
        emit_json(_shown(row, None if file is not None else text))
        return 0
    until = f"expires in {options.expires}" if lifetime_s else "never expires"
    where = "not shown again" if path is None else f"in {strip_control(path)}"
    about = f"id {row.id}, scopes {', '.join(row.scopes)}, {until}. It is {where}."
    if file is None:
        print(text)
    print(about, file=sys.stderr)  # standard output has the token alone, for scripts
    return 0


def _open_output(path: str) -> int:
    """Return a new file of the user's own; raises InvalidSettings if there is one already."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidSettings("argument", "--output", f"cannot be created: {error}") from error


def _list(context: CommandContext, options: argparse.Namespace) -> int:
    """List tokens, without those of browsers that are signed in."""
    rows = use_database(context, lambda database: database.tokens.list(options.organisation))
    rows = [row for row in rows if row.parent is None]
    if options.json:
        emit_json([_shown(row) for row in rows])
    elif not rows:
        print(f"no tokens of {strip_control(options.organisation)}")
    else:
        print_table(context, COLUMNS, [_cells(row, context.now) for row in rows])
    return 0


def _revoke(context: CommandContext, options: argparse.Namespace) -> int:
    def revoke(database: "PostgresDatabase") -> Awaitable[bool]:
        return database.tokens.revoke(options.organisation, options.id, time.time())

    if not use_database(context, revoke):
        raise InvalidRequest(
            f"no valid token {options.id!r} of {options.organisation}",
            "`brimline token list` lists ids.",
        )
    if options.json:
        emit_json({"revoked": options.id})
    else:
        print(f"revoked {strip_control(options.id)}: servers refuse it within seconds")
    return 0


def _shown(row: "TokenRow", text: str | None = None) -> TokenShown:
    shown = msgspec.convert(row, TokenShown, from_attributes=True)
    return msgspec.structs.replace(shown, token=text)


def _cells(row: "TokenRow", now: float) -> list[Cell]:
    used = "never" if row.last_used_at is None else format_age(now - row.last_used_at)
    return [
        Cell(row.id),
        Cell(strip_control(row.name)),
        Cell(", ".join(row.scopes)),
        Cell(_state(row, now)),
        Cell(format_age(now - row.created_at)),
        Cell(used),
    ]


def _state(row: "TokenRow", now: float) -> str:
    if row.revoked_at is not None:
        return "revoked"
    if row.expires_at is None:
        return "valid"
    return "expired" if row.expires_at <= now else f"{format_age(row.expires_at - now)} left"


def _list_scopes() -> str:
    return ", ".join(SCOPES)
