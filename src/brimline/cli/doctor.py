"""`brimline doctor`: what is there, what is heard from, and what to do about the rest."""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline._version import __version__
from brimline.cli.ask import ask
from brimline.cli.context import Context, emit_json
from brimline.cli.paint import Shade, age, clean, counted, painted
from brimline.errors import BrimlineError, NotRunning
from brimline.settings import socket_path, state_dir
from brimline.setup import RECIPES, Wish, installed, plan
from brimline.sources import AGENTS, present

QUIET = 3_600.0
"""After so many seconds without a word, hooks that are installed are worth a look."""

AHEAD = 60.0
"""A word that comes from so far in the future tells of a clock that is wrong."""

SHADES: dict[bool, Shade] = {True: "low", False: "high"}


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at: how it is, and what to do where it is not well."""

    about: str
    well: bool
    told: str
    hint: str | None = None


def run(context: Context, options: argparse.Namespace) -> int:
    """Look at everything; the exit code is 1 where something is not well."""
    checks = list(_checks(context))
    if options.json:
        emit_json(checks)
    else:
        for check in checks:
            print("\n".join(_lines(context, check)))
    return 0 if all(check.well for check in checks) else 1


def _lines(context: Context, check: Check) -> Iterator[str]:
    mark = painted("ok" if check.well else "!!", SHADES[check.well], context.colour)
    yield f"{mark}  {check.about:<12} {clean(check.told)}"
    if check.hint and not check.well:
        yield f"    {'':<12} {check.hint}"


def _checks(context: Context) -> Iterator[Check]:
    state = state_dir(context.places.env, context.places.home)
    found = present(context.places)
    yield Check("brimline", True, f"{__version__}, Python {sys.version.split()[0]}")
    names = ", ".join(AGENTS[agent] for agent in found)
    yield Check("agents", bool(found), names or "none found", "Start one, or `brimline demo`.")
    yield from (_hooks(context, agent, state) for agent in found if agent in RECIPES)
    yield from _daemon(context)
    yield _store(state)
    yield _spool(state)


def _hooks(context: Context, agent: str, state: Path) -> Check:
    """Whether our hooks are in an agent's settings, as they would be put there now."""
    package = Path(__file__).parent.parent
    program = installed(package, sys.executable, state, socket_path(state, os.getuid()))
    wish = Wish(program=program, state=state, cwd=Path.cwd())
    (change,) = plan([agent], context.places, wish)
    hint = f"`brimline setup {agent}` puts them in."
    if change.problem:
        return Check(f"{agent} hooks", False, change.problem, "Mend the file, then set it up.")
    told = f"to be {change.what}" if change.pending else "installed"
    return Check(f"{agent} hooks", not change.pending, told, hint)


def _daemon(context: Context) -> Iterator[Check]:
    try:
        told = ask(context, "GET", "/v1/daemon")
        views = ask(context, "GET", "/v1/sessions")
    except NotRunning as error:
        yield Check("daemon", False, error.args[0], "`brimline serve` starts it.")
        return
    except BrimlineError as error:
        yield Check("daemon", False, str(error))
        return
    same = told["version"] == __version__
    since = age(context.now - told["since"])
    hint = "It is of another version: `brimline serve --stop`, then start it again."
    yield Check("daemon", same, f"{told['version']}, for {since}, at {told['address']}", hint)
    yield _heard(context, [view["session"]["seen_at"] for view in views])
    lost = f"{told['malformed']:,} not understood, {told['dropped']:,} dropped"
    yield Check("losses", not told["dropped"], lost, "The spool was full while no daemon ran.")


def _heard(context: Context, seen: list[float]) -> Check:
    if not seen:
        return Check("heard", False, "nothing yet", "Start an agent that has our hooks.")
    last = context.now - max(seen)
    if last < -AHEAD:
        return Check("clock", False, f"{age(-last)} ahead", "Set this machine's clock.")
    told = f"{counted(len(seen), 'session')}, the last {age(max(0.0, last))} ago"
    return Check("heard", last < QUIET, told, "If an agent runs: are its hooks switched off?")


def _store(state: Path) -> Check:
    path = state / "brimline.db"
    if not path.exists():
        return Check("store", True, "none yet")
    writable = os.access(path, os.W_OK)
    told = f"{path.stat().st_size / 1e6:.1f} MB at {path}"
    return Check("store", writable, told, "It cannot be written: look at its owner.")


def _spool(state: Path) -> Check:
    waiting = [path for path in (state / "spool", state / "spool.taking") if path.exists()]
    size = sum(path.stat().st_size for path in waiting)
    told = f"{size / 1e6:.1f} MB wait for the daemon" if size else "empty"
    return Check("spool", not size, told, "`brimline serve` takes it in.")
