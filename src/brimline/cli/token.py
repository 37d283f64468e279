"""`brimline token`: the tokens that machines, telemetry and people show to a fleet's server."""

import argparse
import time
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from brimline.cli.arguments import add_json
from brimline.cli.context import CommandContext, emit_json, print_table
from brimline.cli.fleet_database import (
    DATABASE_HELP,
    MAX_LISTED,
    account_name,
    find_machine,
    use_database,
)
from brimline.cli.fleet_server import format_end
from brimline.cli.token_creation import TokenShown, create, shown_token
from brimline.cli.token_orders import NEVER, SCOPES, parse_machines
from brimline.errors import InvalidRequest, InvalidSettings
from brimline.store.fleet import DEFAULT_ORGANISATION
from brimline.terminal.text import Cell, Column, format_age, strip_control

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brimline.store.postgres.database import PostgresDatabase
    from brimline.store.postgres.tokens import TokenRow

USAGE = """brimline token create --name NAME --scope SCOPE ... [--expires SPAN]
           [--team TEAM] [--machines N] [--output FILE] [OPTIONS]
       brimline token create --from FILE [--scope SCOPE ...] [--dry-run]
           [--output FILE|FOLDER] [OPTIONS]
       brimline token list [ID] [OPTIONS]
       brimline token revoke (ID | --user NAME | --machine ID) [--dry-run] [OPTIONS]"""
ACTIONS = ("create", "list", "revoke")
DEFAULT_LIFETIME = "90d"

COLUMNS = (
    Column("id", min_width=12),
    Column("name", min_width=8),
    Column("scopes", drop_order=3),
    Column("team", drop_order=4),
    Column("machines", drop_order=5),
    Column("state", min_width=8),
    Column("created", right=True, drop_order=1),
    Column("used", right=True, drop_order=2),
)


class SharedToken(msgspec.Struct, frozen=True):
    """A machine that reports with a token of which others may have the text too."""

    machine: str
    token: str


class TokensRevoked(msgspec.Struct, frozen=True):
    """What was revoked, or would be in a dry run; with it all that was made from it.

    With a token in `shared` a machine that was asked for, or one of the person, still reports.
    """

    dry_run: bool
    revoked: list[TokenShown]
    shared: list[SharedToken]


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = USAGE
    help_text = "create, list or revoke"
    to.add_argument("action", choices=ACTIONS, metavar="ACTION", help=help_text)
    help_text = (
        "with revoke: the id of a token, which ends those that were made from it too; "
        "with list: only those that machines have made from this one"
    )
    to.add_argument("id", nargs="?", metavar="ID", help=help_text)
    help_text = "with create: its machine, team or person; messages and the audit log show it"
    to.add_argument("--name", help=help_text)
    help_text = (
        "with create, once or more: ingest (report sessions), read (see them), "
        "act (send messages and handoffs); or enrol (each machine that has it makes its own)"
    )
    to.add_argument("--scope", action="append", choices=SCOPES, metavar="SCOPE", help=help_text)
    help_text = (
        f"with create: how long it is valid; `{NEVER}` sets no end (default {DEFAULT_LIFETIME})"
    )
    to.add_argument("--expires", metavar="SPAN", default=DEFAULT_LIFETIME, help=help_text)
    help_text = "with create: the team of the machines that report with it"
    to.add_argument("--team", metavar="TEAM", help=help_text)
    help_text = "with create --scope enrol: how many machines may have a token by it"
    to.add_argument("--machines", type=parse_machines, metavar="N", help=help_text)
    help_text = (
        "with create: a CSV file with a line for each token, which has the column name and any of "
        "scopes, expires, team, machines; what exists already is left out"
    )
    to.add_argument("--from", dest="file", metavar="FILE", help=help_text)
    help_text = "with revoke: the tokens of this name, and of the machines of this user"
    to.add_argument("--user", metavar="NAME", help=help_text)
    help_text = (
        "with revoke: the token that this machine made (`brimline fleet machines` lists ids)"
    )
    to.add_argument("--machine", metavar="ID", help=help_text)
    help_text = "with create --from and revoke: only print what it would do"
    to.add_argument("--dry-run", action="store_true", help=help_text)
    help_text = (
        "with create: write it into a new file that only you can read; with --from, all as CSV, "
        "or in a folder each into a file of its own"
    )
    to.add_argument("--output", metavar="FILE", help=help_text)
    help_text = f"the organisation of the tokens (default {DEFAULT_ORGANISATION!r})"
    to.add_argument("--organisation", metavar="NAME", default=DEFAULT_ORGANISATION, help=help_text)
    to.add_argument("--database", metavar="URL", help=DATABASE_HELP)
    add_json(to)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    chosen = [each for each in (options.id, options.user, options.machine) if each is not None]
    if options.action == "revoke" and len(chosen) != 1:
        reason = "pass only one of ID, --user and --machine"
        if not chosen:
            reason = "missing: `brimline token list` lists ids; or pass --user or --machine"
        raise InvalidSettings("argument", "ID", reason)
    if options.id is not None and options.action == "create":
        raise InvalidSettings("argument", "ID", "not allowed here")
    if options.action == "create":
        return create(context, options)
    if options.action == "list":
        return _list(context, options)
    return _revoke(context, options)


def _list(context: CommandContext, options: argparse.Namespace) -> int:
    """List tokens, without those of browsers that are signed in; or those made from one."""
    every = use_database(context, lambda database: database.tokens.list(options.organisation))
    machines = _count_machines(every, context.now)
    rows = [row for row in every if not row.is_sign_in and row.parent == options.id]
    if options.json:
        emit_json([shown_token(row, machines=machines[row.id]) for row in rows])
    elif not rows:
        whose = options.organisation if options.id is None else f"machines by {options.id}"
        print(f"no tokens of {strip_control(whose)}")
    else:
        cells = [_cells(row, machines[row.id], context.now) for row in rows]
        print_table(context, COLUMNS, cells)
    return 0


def _revoke(context: CommandContext, options: argparse.Namespace) -> int:
    """Revoke a token by its id, or those of a person or a machine, with all that they made."""
    ended = use_database(context, lambda database: _revoke_tokens(database, options))
    if not ended.revoked and options.id is not None:
        raise InvalidRequest(
            f"no valid token {options.id!r} of {options.organisation}",
            "`brimline token list` lists ids.",
        )
    if options.json:
        emit_json(ended)
        return 0
    verb, end = "revoked", ": servers refuse it within seconds"
    if options.dry_run:
        verb, end = "would revoke", ""
    for row in ended.revoked:
        print(f"{verb} {row.id}, {strip_control(row.name)}{end}")
    if not ended.revoked:
        print(f"no valid tokens of {strip_control(options.user or options.machine)}")
    for machine in ended.shared:
        print(
            f"machine {strip_control(machine.machine)} reports with token {machine.token}, which "
            f"others may have too: `brimline token revoke {machine.token}` ends it for all"
        )
    return 0


async def _revoke_tokens(
    database: "PostgresDatabase", options: argparse.Namespace
) -> TokensRevoked:
    organisation, now, machine = options.organisation, time.time(), options.machine
    if machine is not None:
        machine = await find_machine(database, organisation, machine)
    reports = [
        each.report
        for each in await database.machines(organisation).list(MAX_LISTED)
        if each.report.id == machine or (options.user and each.report.user == options.user)
    ]
    machines = {report.id for report in reports} | {machine} - {None}
    every = await database.tokens.list(organisation)
    rows = [
        row
        for row in every
        if row.revoked_at is None
        # An expired token of a machine could be extended, and those of an enrolment outlive it.
        and (row.is_valid(now) or row.machine is not None or row.max_machines is not None)
        and not row.is_sign_in
        and (
            row.id == options.id
            or row.machine in machines
            or (row.machine is None and row.name == options.user)
        )
    ]
    counts = _count_machines(every, now)
    if not options.dry_run:
        await database.tokens.revoke_all(rows, account_name(), now)
    shared = {row.id for row in every if row.machine is None and row.is_valid(now)}
    shared -= {row.id for row in rows}
    revoked = [shown_token(row, machines=counts[row.id]) for row in rows]
    if not options.dry_run:
        revoked = [replace(row, revoked_at=now) for row in revoked]
    return TokensRevoked(
        options.dry_run,
        revoked,
        [SharedToken(each.id, each.token) for each in reports if each.token in shared],
    )


def _count_machines(rows: "Sequence[TokenRow]", now: float) -> Counter[str | None]:
    """Count the machines that have a valid token, by the tokens that they were made from."""
    return Counter(row.parent for row in rows if row.machine and row.is_valid(now))


def _cells(row: "TokenRow", machines: int, now: float) -> list[Cell]:
    used = "never" if row.last_used_at is None else format_age(now - row.last_used_at)
    return [
        Cell(row.id),
        Cell(strip_control(row.name)),
        Cell(", ".join(row.scopes)),
        Cell(strip_control(row.team or "")),
        Cell("" if row.max_machines is None else f"{machines:,} of {row.max_machines:,}"),
        Cell(_state(row, now)),
        Cell(format_age(now - row.created_at)),
        Cell(used),
    ]


def _state(row: "TokenRow", now: float) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return format_end(row.expires_at, now) or "valid"
