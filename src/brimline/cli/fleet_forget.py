"""`brimline fleet forget`: removes what a person or a machine has reported."""

import argparse
import time
from typing import TYPE_CHECKING

import msgspec

from brimline.cli.context import CommandContext, emit_json
from brimline.cli.fleet_database import account_name, find_machine, use_database
from brimline.errors import InvalidSettings
from brimline.terminal.text import count_of, strip_control

if TYPE_CHECKING:
    from brimline.store.postgres.database import PostgresDatabase
    from brimline.store.postgres.erasure import ErasedRows

STILL_REPORTS = (
    "A machine that still reports adds its next changes: revoke its token first, or stop its "
    "daemon. `brimline token list` lists tokens; the audit log keeps who sent what."
)


class ForgottenShown(msgspec.Struct, frozen=True):
    """What was removed, or would be in a dry run."""

    dry_run: bool
    sessions: int
    calls: int
    days: int
    machines: int


def forget(context: CommandContext, options: argparse.Namespace) -> int:
    """Remove rows from the database, and write that into the audit log."""
    user, machine, dry_run = options.user, options.machine, options.dry_run
    if not (user or machine):
        reason = "missing: `brimline fleet machines` lists users and ids of machines"
        raise InvalidSettings("argument", "--user or --machine", reason)

    async def erase(database: "PostgresDatabase") -> "ErasedRows":
        from brimline.store.postgres.audit import AuditRow

        nonlocal machine
        organisation = options.organisation
        if machine:
            machine = await find_machine(database, organisation, machine)
        erased = await database.erasure(organisation).erase(user, machine, dry_run)
        if not dry_run:
            who = [f"user {user}" if user else "", f"machine {machine}" if machine else ""]
            subject = f"{' of '.join(filter(None, who))}: {count_of(erased.sessions, 'session')}"
            row = AuditRow(organisation, time.time(), account_name(), "forget", subject=subject)
            await database.audit.append(row)
        return erased

    erased = use_database(context, erase)
    if options.json:
        emit_json(ForgottenShown(dry_run, **msgspec.structs.asdict(erased)))
        return 0
    parts = ", ".join(
        count_of(amount, what)
        for amount, what in (
            (erased.sessions, "session"),
            (erased.calls, "call"),
            (erased.days, "daily sum"),
            (erased.machines, "machine"),
        )
    )
    who = strip_control(user or machine)
    print(f"{'would remove' if dry_run else 'removed'} of {who}: {parts}")
    if erased.sessions and not dry_run:
        print(STILL_REPORTS)
    return 0
