"""A change as setup shows it: a file line by line, or the service, and what is left to do."""

import difflib
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.agents import display_name
from brimline.cli import background
from brimline.cli.context import CommandContext
from brimline.errors import InvalidSettings, NotRunning
from brimline.install.plan import Change, apply, plan_setup_file
from brimline.install.service import (
    CommandResult,
    Service,
    Words,
    find_service,
    run_commands,
    service_file,
)
from brimline.install.shared_file import backup_path
from brimline.terminal.text import Shade, colourize, shorten_home, strip_control

TITLES = {"service": "The service", "parent": "The parent", "launcher": "The launcher"}
TOKEN = re.compile(r"Bearer [0-9a-f]{64}")
UNTOUCHED = "The file was not changed."
SHADES: dict[str, Shade] = {"+": "low", "-": "high", "@": "dim"}

STARTED = "It is running, and starts when you log in."
ENDED = "It is stopped, and no longer starts when you log in."


class SetupShown(msgspec.Struct, frozen=True):
    """What `setup --json` prints of an agent; `written`: whether its file was changed.

    `problem`: why it was not, or what else could not be done. `agent` is `service`, `parent`
    or `launcher` for a file that is no agent's. `backup` is where the file as it was is kept, if
    there was one.
    """

    agent: str
    path: str | None
    what: str
    written: bool
    backup: str | None
    problem: str | None
    notes: tuple[str, ...]
    diff: str


def apply_change(change: Change) -> SetupShown:
    """Write a change; an error becomes its problem."""
    try:
        done = apply(change)
    except InvalidSettings as error:
        return describe_change(msgspec.structs.replace(change, reason=str(error)))
    return describe_change(done, written=change.pending and done.before != done.after)


def describe_change(change: Change, written: bool = False) -> SetupShown:
    return SetupShown(
        agent=change.agent,
        path=None if change.path is None else str(change.path),
        what=change.what,
        written=written,
        backup=_backup(change) if written else None,
        problem=change.reason,
        notes=change.notes,
        diff="\n".join(_diff(change)),
    )


def _backup(change: Change) -> str | None:
    place = backup_path(change.path) if change.path else None
    return str(place) if place and place.exists() else None


def _diff(change: Change) -> Iterator[str]:
    name = str(change.path)
    before, after = _rows(change.before), _rows(change.after)
    yield from difflib.unified_diff(before, after, name, name, n=2, lineterm="")


def _rows(data: bytes | None) -> list[str]:
    """The lines of a file; a newline alone ends one, whatever else Unicode calls the end.

    The token of HTTP hooks is not shown: people show what a command printed to others.
    """
    text = TOKEN.sub("Bearer ***", (data or b"").decode("utf-8", "replace"))
    text = text.replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def change_lines(context: CommandContext, change: SetupShown) -> Iterator[str]:
    home, done = context.places.home, f"{change.what[:1].upper()}{change.what[1:]}"
    place = f"  {strip_control(shorten_home(change.path, home))}" if change.path else ""
    yield colourize(
        f"{TITLES.get(change.agent) or display_name(change.agent)}{place}", "bold", context.colour
    )
    for line in change.diff.split("\n")[2:]:
        yield colourize(
            strip_control(line.expandtabs(4)), SHADES.get(line[:1], "none"), context.colour
        )
    if change.problem:
        yield colourize(strip_control(change.problem), "high", context.colour)
        yield (
            f"{done}, but with the problem above. Fix it and run setup again."
            if change.written
            else UNTOUCHED
        )
        return
    yield f"{done}."
    if change.backup:
        yield f"Backup: {strip_control(shorten_home(change.backup, home))}"
    yield from map(strip_control, change.notes)


def local_service(context: CommandContext, state: Path) -> Service:
    return find_service(sys.platform, context.places, state, sys.executable)


def is_active(context: CommandContext, service: Service) -> bool:
    return run_commands([service.check_active], context.places.env)[0].reason is None


def change_service(context: CommandContext, state: Path, remove: bool, dry: bool) -> SetupShown:
    """Install or remove the service; what the manager failed to do becomes a note."""
    service = local_service(context, state)
    what = "the service is removed" if remove else f"a {service.manager} service"
    change = plan_setup_file(service_file(service, state, remove), what)
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


def _start(context: CommandContext, service: Service) -> list[CommandResult]:
    """Enable the service; it replaces a running daemon if the manager answers."""
    env = context.places.env
    ran = run_commands(service.enable, env)
    if any(one.reason for one in ran):
        return [*ran, CommandResult(service.start, _reason(ran))]
    with suppress(NotRunning):
        background.stop(context)
    run_commands(service.before_start, env)
    return [*ran, *run_commands([service.start], env)]


def _remove(context: CommandContext, service: Service, change: Change) -> SetupShown:
    """Stop the service before its file is removed: the manager must still know it."""
    env = context.places.env
    stopped = run_commands(service.stop, env)
    applied = apply_change(change)
    return _with_notes(
        applied, _outcome(service, [*stopped, *run_commands(service.after_removal, env)], ENDED)
    )


def _outcome(service: Service, ran: Sequence[CommandResult], done: str) -> tuple[str, ...]:
    left = [one.words for one in ran if one.reason]
    if not left:
        return (done,)
    return (
        f"{service.manager} failed: {_reason(ran)}.",
        f"Run this yourself: {_shell(left)}",
    )


def _reason(ran: Sequence[CommandResult]) -> str | None:
    return next((one.reason for one in ran if one.reason), None)


def _dry_run_notes(service: Service, remove: bool) -> tuple[str, ...]:
    commands = [*service.enable, service.start]
    if remove:
        commands = [*service.stop, *service.after_removal]
    return (f"Would run: {_shell(commands)}",)


def _shell(commands: Sequence[Words]) -> str:
    return " && ".join(shlex.join(words) for words in commands)


def _with_notes(change: SetupShown, notes: Sequence[str]) -> SetupShown:
    return msgspec.structs.replace(change, notes=(*change.notes, *notes))
