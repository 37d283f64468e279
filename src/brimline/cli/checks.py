"""What doctor looks at, one thing after the other."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from brimline._version import __version__
from brimline.cli.context import Context
from brimline.paint import age, counted
from brimline.setup.found import Found
from brimline.setup.plan import RECIPES
from brimline.sources import source

AHEAD = 60.0
"""A word that comes from so far in the future tells of a clock that is wrong."""

BEHIND = 60.0
"""So many seconds a transcript may be ahead of what the hooks told."""

START = "`brimline serve` starts it. A session's start does too, where autostart is on."


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at: how it is, and what to do where it is not well."""

    about: str
    well: bool
    told: str
    hint: str | None = None


class Heard(msgspec.Struct, frozen=True):
    """What the daemon says of itself and of the sessions; `problem` is why it says nothing."""

    told: dict[str, Any] = {}
    sessions: list[dict[str, Any]] = []
    problem: str | None = None

    @property
    def runs(self) -> bool:
        """Whether there is a daemon."""
        return self.problem is None

    def of(self, agent: str) -> list[dict[str, Any]]:
        """The sessions of an agent, the last that was seen first."""
        found = [one for one in self.sessions if one["agent"] == agent]
        return sorted(found, key=lambda one: one["seen_at"], reverse=True)


def hooks(context: Context, agent: str, found: Sequence[Found], heard: Heard) -> Check:
    """Whether our hooks are in an agent's settings as they would be put there now, and heard."""
    about, hint = f"{agent} hooks", f"`brimline setup {agent}` puts them in."
    broken = next((one.problem for one in found if one.problem), None)
    if broken:
        return Check(about, False, broken, "Mend the file, then set it up.")
    placed = [one for one in found if one.events]
    if not placed:
        return Check(about, False, "none installed", hint)
    for one in placed:
        if wrong := _wrong(one):
            return Check(about, False, f"{wrong} in {one.path}", hint)
    told = f"{counted(len(placed[0].events), 'hook')} installed"
    told += ", posted by the client" if placed[0].posts else ""
    return _with_heard(context, agent, Check(about, True, told), heard)


def _wrong(found: Found) -> str | None:
    if found.switched_off:
        return "switched off by disableAllHooks"
    if found.missing:
        return f"none for {', '.join(found.missing)}"
    return f"those of another installation for {', '.join(found.old)}" if found.old else None


def _with_heard(context: Context, agent: str, check: Check, heard: Heard) -> Check:
    """The same with when it was heard from; not well where its transcripts tell of more."""
    if not heard.runs:
        return check
    last = max((one["seen_at"] for one in heard.of(agent)), default=None)
    written = _written(context, agent)
    since = max(last or 0.0, heard.told["since"])
    if written is not None and written > since + BEHIND:
        told = f"{check.told}, not heard from since a transcript was written"
        return Check(check.about, False, told, RECIPES[agent].then)
    said = "not heard from yet" if last is None else f"heard {age(context.now - last)} ago"
    return Check(check.about, True, f"{check.told}, {said}")


def _written(context: Context, agent: str) -> float | None:
    """When the last transcript of an agent was written."""
    found = source(agent).transcripts(context.places)
    return max((one.modified for one in found), default=None)


def version(agent: str, heard: Heard) -> Iterator[Check]:
    """Whether a client knows what we write, by the version that it told last."""
    told = next((one["version"] for one in heard.of(agent) if one["version"]), None)
    if told is None:
        return
    oldest = RECIPES[agent].oldest
    numbers = tuple(int(number) for number in re.findall(r"[0-9]+", told)[: len(oldest)])
    needed = ".".join(map(str, oldest))
    yield Check(f"{agent} version", numbers >= oldest, told, f"Update it to {needed} or newer.")


def daemon(heard: Heard, now: float) -> Iterator[Check]:
    """Whether it runs, of which version, and what it could not take."""
    if heard.problem is not None:
        yield Check("daemon", False, heard.problem, START)
        return
    told = heard.told
    hint = "It is of another version: `brimline serve --stop`, then start it again."
    line = f"{told['version']}, for {age(now - told['since'])}, at {told['address']}"
    yield Check("daemon", told["version"] == __version__, line, hint)
    lost = f"{told['malformed']:,} not understood, {told['dropped']:,} dropped"
    yield Check("losses", not told["dropped"], lost, "The spool was full while no daemon ran.")


def heard_from(heard: Heard, now: float) -> Iterator[Check]:
    """Whether anything was heard at all, and whether the clocks agree."""
    if not heard.runs:
        return
    seen = [one["seen_at"] for one in heard.sessions]
    if not seen:
        yield Check("heard", False, "nothing yet", "Start an agent that has our hooks.")
        return
    last = now - max(seen)
    told = f"{counted(len(seen), 'session')}, the last {age(max(0.0, last))} ago"
    yield Check("heard", True, told)
    right = last > -AHEAD
    shown = "agrees with what was heard" if right else f"{age(-last)} behind what was heard"
    yield Check("clock", right, shown, "Set this machine's clock.")


def store(state: Path) -> Check:
    """Whether what was heard can be kept."""
    path = state / "brimline.db"
    if not path.exists():
        return Check("store", True, "none yet")
    writable = os.access(path, os.W_OK)
    told = f"{path.stat().st_size / 1e6:.1f} MB at {path}"
    return Check("store", writable, told, "It cannot be written: look at its owner.")


def spool(state: Path) -> Check:
    """Whether anything waits to be taken in, or was lost."""
    size = sum(_size(state / name) for name in ("spool", "spool.taking"))
    lost = _size(state / "spool.dropped")
    told = f"{size / 1e6:.1f} MB wait for the daemon" if size else "empty"
    told += f", {counted(lost, 'event')} lost" if lost else ""
    return Check("spool", not size and not lost, told, "`brimline serve` takes it in.")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
