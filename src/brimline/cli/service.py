"""The service of `brimline setup --service`: its file, and what its manager is told."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.cli import background
from brimline.cli.context import Context
from brimline.cli.setup_diff import Shown, carried_out, shown
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


def here(context: Context, state: Path) -> Service:
    """The service of this machine's manager."""
    return find_service(sys.platform, context.places, state, sys.executable)


def is_active(context: Context, made: Service) -> bool:
    """Whether the manager says that it runs."""
    return run_commands([made.check_active], context.places.env)[0].problem is None


def set_up(context: Context, state: Path, remove: bool, dry: bool) -> Shown:
    """Put the service in, or take it out; what the manager did not do is told."""
    made = here(context, state)
    what = "the service is removed" if remove else f"a {made.manager} service"
    change = plan_managed_file(service_file(made, state, remove), what)
    if dry:
        return _with(shown(change), _would(made, remove) if change.pending else ())
    if remove:
        return _taken_out(context, made, change) if change.pending else shown(change)
    told = carried_out(change)
    if told.problem or (not change.pending and is_active(context, made)):
        return told
    return _with(told, _outcome(made, _started(context, made), STARTED))


def _started(context: Context, made: Service) -> list[CommandResult]:
    """Enable it; where the manager answers, it takes over from a daemon that runs already."""
    env = context.places.env
    ran = run_commands(made.enable, env)
    if any(one.problem for one in ran):
        return [*ran, CommandResult(made.start, _problem(ran))]
    with suppress(NotRunning):
        background.stop(context)
    run_commands(made.before_start, env)
    return [*ran, *run_commands([made.start], env)]


def _taken_out(context: Context, made: Service, change: Change) -> Shown:
    """Take it out; the manager has to know it still when it is told to forget it."""
    env = context.places.env
    stopped = run_commands(made.stop, env)
    told = carried_out(change)
    return _with(told, _outcome(made, [*stopped, *run_commands(made.after_removal, env)], GONE))


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


def _would(made: Service, remove: bool) -> tuple[str, ...]:
    commands = [*made.stop, *made.after_removal] if remove else [*made.enable, made.start]
    return (f"Would run: {_shell(commands)}",)


def _shell(commands: Sequence[Words]) -> str:
    return " && ".join(shlex.join(words) for words in commands)


def _with(told: Shown, notes: Sequence[str]) -> Shown:
    return msgspec.structs.replace(told, notes=(*told.notes, *notes))
