"""The service of `brimline setup --service`: its file, and what its manager is told."""

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
from brimline.setup.plan import Change, plan_managed_file
from brimline.setup.service import (
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


def is_active(context: Context, made: Service) -> bool:
    return run_commands([made.check_active], context.places.env)[0].problem is None


def change_service(context: Context, state: Path, remove: bool, dry: bool) -> Shown:
    """Install or remove the service; what the manager failed to do becomes a note."""
    made = local_service(context, state)
    what = "the service is removed" if remove else f"a {made.manager} service"
    change = plan_managed_file(service_file(made, state, remove), what)
    if dry:
        return _with_notes(
            describe_change(change), _dry_run_notes(made, remove) if change.pending else ()
        )
    if remove:
        return _remove(context, made, change) if change.pending else describe_change(change)
    told = apply_change(change)
    if told.problem or (not change.pending and is_active(context, made)):
        return told
    return _with_notes(told, _outcome(made, _start(context, made), STARTED))


def _start(context: Context, made: Service) -> list[CommandResult]:
    """Enable the service; it replaces a running daemon if the manager answers."""
    env = context.places.env
    ran = run_commands(made.enable, env)
    if any(one.problem for one in ran):
        return [*ran, CommandResult(made.start, _problem(ran))]
    with suppress(NotRunning):
        background.stop(context)
    run_commands(made.before_start, env)
    return [*ran, *run_commands([made.start], env)]


def _remove(context: Context, made: Service, change: Change) -> Shown:
    """Stop the service before its file is removed: the manager must still know it."""
    env = context.places.env
    stopped = run_commands(made.stop, env)
    told = apply_change(change)
    return _with_notes(
        told, _outcome(made, [*stopped, *run_commands(made.after_removal, env)], GONE)
    )


def _outcome(made: Service, ran: Sequence[CommandResult], done: str) -> tuple[str, ...]:
    left = [one.words for one in ran if one.problem]
    if not left:
        return (done,)
    return (
        f"{made.manager} failed: {_problem(ran)}.",
        f"Run this yourself: {_shell(left)}",
    )


def _problem(ran: Sequence[CommandResult]) -> str | None:
    return next((one.problem for one in ran if one.problem), None)


def _dry_run_notes(made: Service, remove: bool) -> tuple[str, ...]:
    commands = [*made.stop, *made.after_removal] if remove else [*made.enable, made.start]
    return (f"Would run: {_shell(commands)}",)


def _shell(commands: Sequence[Words]) -> str:
    return " && ".join(shlex.join(words) for words in commands)


def _with_notes(told: Shown, notes: Sequence[str]) -> Shown:
    return msgspec.structs.replace(told, notes=(*told.notes, *notes))
