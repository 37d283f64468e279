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
from brimline.setup.plan import Change, plan_beside
from brimline.setup.service import Ran, Service, Words, beside, run, service

STARTED = "It is running, and starts when you log in."
GONE = "It is stopped, and no longer starts when you log in."


def here(context: Context, state: Path) -> Service:
    """The service of this machine's manager."""
    return service(sys.platform, context.places, state, sys.executable)


def is_active(context: Context, made: Service) -> bool:
    """Whether the manager says that it runs."""
    return run([made.active], context.places.env)[0].problem is None


def set_up(context: Context, state: Path, remove: bool, dry: bool) -> Shown:
    """Put the service in, or take it out; what the manager did not do is told."""
    made = here(context, state)
    what = "the service is taken away" if remove else f"a service of {made.manager}"
    change = plan_beside(beside(made, state, remove), what)
    if dry:
        return _with(shown(change), _would(made, remove) if change.pending else ())
    if remove:
        return _taken_out(context, made, change) if change.pending else shown(change)
    told = carried_out(change)
    if told.problem or (not change.pending and is_active(context, made)):
        return told
    return _with(told, _outcome(made, _started(context, made), STARTED))


def _started(context: Context, made: Service) -> list[Ran]:
    """Enable it; where the manager answers, it takes over from a daemon that runs already."""
    env = context.places.env
    ran = run(made.enable, env)
    if any(one.problem for one in ran):
        return [*ran, Ran(made.start, _problem(ran))]
    with suppress(NotRunning):
        background.stop(context)
    run(made.renewed, env)
    return [*ran, *run([made.start], env)]


def _taken_out(context: Context, made: Service, change: Change) -> Shown:
    """Take it out; the manager has to know it still when it is told to forget it."""
    env = context.places.env
    stopped = run(made.stop, env)
    told = carried_out(change)
    return _with(told, _outcome(made, [*stopped, *run(made.forget, env)], GONE))


def _outcome(made: Service, ran: Sequence[Ran], done: str) -> tuple[str, ...]:
    left = [one.words for one in ran if one.problem]
    if not left:
        return (done,)
    return (
        f"{made.manager} failed: {_problem(ran)}.",
        f"Run this yourself: {_shell(left)}",
    )


def _problem(ran: Sequence[Ran]) -> str | None:
    return next((one.problem for one in ran if one.problem), None)


def _would(made: Service, remove: bool) -> tuple[str, ...]:
    commands = [*made.stop, *made.forget] if remove else [*made.enable, made.start]
    return (f"Would run: {_shell(commands)}",)


def _shell(commands: Sequence[Words]) -> str:
    return " && ".join(shlex.join(words) for words in commands)


def _with(told: Shown, notes: Sequence[str]) -> Shown:
    return msgspec.structs.replace(told, notes=(*told.notes, *notes))
