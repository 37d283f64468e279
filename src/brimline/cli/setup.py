"""`brimline setup`: our hooks and status line in the agents' settings, or out of them again."""

import argparse
import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.cli.context import Context, emit_json, tilde
from brimline.cli.paint import Shade, clean, painted
from brimline.errors import InvalidSettings
from brimline.settings import socket_path, state_dir
from brimline.setup import Change, Program, Wish, apply, installed, plan
from brimline.setup.file import backup_of
from brimline.sources import AGENTS, known, present

ADDRESS = "http://127.0.0.1:8420"
"""Where the daemon serves unless it is told otherwise."""

NONE = "brimline: no agent is found here. Name the one that is to be set up: brimline setup claude"
DRY = "Nothing was written: this is what would be."
NEXT = "Start an agent, and `brimline serve --status` tells what was heard."
SHADES: dict[str, Shade] = {"+": "low", "-": "high", "@": "dim"}


class Shown(msgspec.Struct, frozen=True):
    """What `setup --json` prints of an agent; `written` tells whether its file was changed.

    `backup` is where the file as it was is kept, if there was one.
    """

    agent: str
    path: str | None
    what: str
    written: bool
    backup: str | None
    problem: str | None
    notes: tuple[str, ...]
    diff: str


def run(context: Context, options: argparse.Namespace) -> int:
    """Show what changes in each agent's settings, and write it."""
    agents = [known(agent) for agent in options.agents] or present(context.places)
    if not agents:
        print(NONE, file=sys.stderr)
        return 1
    changes = plan(agents, context.places, _wish(context, options))
    shown = [_shown(one) if options.dry_run else _carried_out(one) for one in changes]
    if options.json:
        emit_json(shown)
    else:
        _print(context, options, shown)
    return 1 if any(one.problem for one in shown) else 0


def _print(context: Context, options: argparse.Namespace, shown: list[Shown]) -> None:
    for one in shown:
        print("\n".join(_lines(context, one)), end="\n\n")
    if options.dry_run:
        print(DRY)
    elif any(one.written for one in shown) and not options.remove:
        print(NEXT)


def _wish(context: Context, options: argparse.Namespace) -> Wish:
    state = Path(os.path.abspath(state_dir(context.places.env, context.places.home)))
    return Wish(
        program=_program(state),
        state=state,
        cwd=Path.cwd(),
        remove=options.remove,
        scope=options.scope,
        mode=options.status_line,
        address=ADDRESS if options.transport == "http" else None,
    )


def _program(state: Path) -> Program:
    package = Path(os.path.abspath(__file__)).parent.parent
    return installed(package, sys.executable, state, socket_path(state, os.getuid()))


def _carried_out(change: Change) -> Shown:
    """Write a change; what stands in the way is told, and the other agents go on."""
    try:
        done = apply(change)
    except InvalidSettings as error:
        return _shown(msgspec.structs.replace(change, problem=str(error)))
    return _shown(done, written=change.pending and done.before != done.after)


def _shown(change: Change, written: bool = False) -> Shown:
    return Shown(
        agent=change.agent,
        path=None if change.path is None else str(change.path),
        what=change.what,
        written=written,
        backup=_backup(change) if written else None,
        problem=change.problem,
        notes=change.notes,
        diff="\n".join(_diff(change)),
    )


def _backup(change: Change) -> str | None:
    """Where the file as it was is kept."""
    place = backup_of(change.path) if change.path else None
    return str(place) if place and place.exists() else None


def _diff(change: Change) -> Iterator[str]:
    """The change as a unified diff; a file that is not there is empty."""
    name = str(change.path)
    before, after = _rows(change.before), _rows(change.after)
    yield from difflib.unified_diff(before, after, name, name, n=2, lineterm="")


def _rows(data: bytes | None) -> list[str]:
    """The lines of a file; a newline alone ends one, whatever else Unicode calls the end."""
    text = (data or b"").decode("utf-8", "replace").replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _lines(context: Context, shown: Shown) -> Iterator[str]:
    """What is told of an agent."""
    home = context.places.home
    place = f"  {clean(tilde(shown.path, home))}" if shown.path else ""
    yield painted(f"{AGENTS[shown.agent]}{place}", "bold", context.colour)
    for line in shown.diff.split("\n")[2:]:
        yield painted(clean(line.expandtabs(4)), SHADES.get(line[:1], "none"), context.colour)
    if shown.problem:
        yield painted(clean(shown.problem), "high", context.colour)
        yield "The file is as it was."
        return
    yield f"{shown.what[:1].upper()}{shown.what[1:]}."
    if shown.backup:
        yield f"The file as it was: {clean(tilde(shown.backup, home))}"
    yield from shown.notes
