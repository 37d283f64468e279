"""A change of a file as setup shows it: what becomes of it, line by line, and what is to do."""

import difflib
import re
from collections.abc import Iterator

import msgspec

from brimline.agents import display_name
from brimline.cli.context import Context
from brimline.errors import InvalidSettings
from brimline.install.plan import Change, apply
from brimline.install.shared_file import backup_path
from brimline.terminal.text import Shade, colourize, shorten_home, strip_control

TITLES = {"service": "The service", "parent": "The parent", "launcher": "The launcher"}
TOKEN = re.compile(r"Bearer [0-9a-f]{64}")
UNTOUCHED = "The file was not changed."
SHADES: dict[str, Shade] = {"+": "low", "-": "high", "@": "dim"}


class Shown(msgspec.Struct, frozen=True):
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


def apply_change(change: Change) -> Shown:
    """Write a change; an error becomes its problem."""
    try:
        done = apply(change)
    except InvalidSettings as error:
        return describe_change(msgspec.structs.replace(change, problem=str(error)))
    return describe_change(done, written=change.pending and done.before != done.after)


def describe_change(change: Change, written: bool = False) -> Shown:
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


def change_lines(context: Context, change: Shown) -> Iterator[str]:
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
