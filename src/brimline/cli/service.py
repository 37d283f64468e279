"""The service of `brimline setup --service`: its file, and the commands for its manager."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.cli import background
from brimline.cli.context import Context
from brimline.cli.setup_diff import Shown, apply_change, describe_change
from brimline.errors import NotRunning
from brimline.install.plan import Change, plan_managed_file
from brimline.install.service import (
    CommandResult,
    Service,
    Words,
    find_service,
    run_commands,
    service_file,
)

STARTED = "It is running, and starts when you log in."
GONE = "It is stopped, and no longer starts when you log in."


def local_service(context: Context, state: Path) -> Service:
    return find_service(sys.platform, context.places, state, sys.executable)


def is_active(context: Context, service: Service) -> bool:
    return run_commands([service.check_active], context.places.env)[0].problem is None


def change_service(context: Context, state: Path, remove: bool, dry: bool) -> Shown:
    """Install or remove the service; what the manager failed to do becomes a note."""
    service = local_service(context, state)
    what = "the service is removed" if remove else f"a {service.manager} service"
    change = plan_managed_file(service_file(service, state, remove), what)
    if dry:
        return _with_notes(
            describe_change(change), _dry_run_notes(service, remove) if change.pending else ()
        )
    if remove:
        return _remove(context, service, change) if change.pending else describe_change(change)
    change_made = apply_change(change)
    if change_made.problem or (not change.pending and is_active(context, service)):
        return change_made
    return _with_notes(change_made, _outcome(service, _start(context, service), STARTED))


def _start(context: Context, service: Service) -> list[CommandResult]:
    """Enable the service; it replaces a running daemon if the manager answers."""
    env = context.places.env
    ran = run_commands(service.enable, env)
    if any(one.problem for one in ran):
        return [*ran, CommandResult(service.start, _problem(ran))]
    with suppress(NotRunning):
        background.stop(context)
    run_commands(service.before_start, env)
    return [*ran, *run_commands([service.start], env)]


def _remove(context: Context, service: Service, change: Change) -> Shown:
    """Stop the service before its file is removed: the manager must still know it."""
    env = context.places.env
    stopped = run_commands(service.stop, env)
    applied = apply_change(change)
    return _with_notes(
        applied, _outcome(service, [*stopped, *run_commands(service.after_removal, env)], GONE)
    )


def _outcome(service: Service, ran: Sequence[CommandResult], done: str) -> tuple[str, ...]:
    left = [one.words for one in ran if one.problem]
    if not left:
        return (done,)
    return (
        f"{service.manager} failed: {_problem(ran)}.",
        f"Run this yourself: {_shell(left)}",
    )


def _problem(ran: Sequence[CommandResult]) -> str | None:
    return next((one.problem for one in ran if one.problem), None)


def _dry_run_notes(service: Service, remove: bool) -> tuple[str, ...]:
    commands = [*service.enable, service.start]
    if remove:
        commands = [*service.stop, *service.after_removal]
    return (f"Would run: {_shell(commands)}",)


def _shell(commands: Sequence[Words]) -> str:
    return " && ".join(shlex.join(words) for words in commands)


def _with_notes(change: Shown, notes: Sequence[str]) -> Shown:
    return msgspec.structs.replace(change, notes=(*change.notes, *notes))
