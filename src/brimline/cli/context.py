"""What every command gets: the places, the settings, and where it writes."""

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

import msgspec

from brimline.agents.transcripts.source import Places
from brimline.settings import Settings, cache_dir, state_dir
from brimline.terminal.text import (
    LOOK_ALIKES,
    Cell,
    Column,
    count_of,
    escape_control,
    format_table,
    strip_control,
)


class CommandContext(msgspec.Struct, frozen=True):
    """Where to look, what the user wants, and what the output can show."""

    places: Places
    settings: Settings
    width: int
    colour: bool
    now: float

    @classmethod
    def for_terminal(cls, places: Places, settings: Settings) -> "CommandContext":
        return cls(
            places=places,
            settings=settings,
            width=terminal_width(places.env),
            colour=wants_colour(settings.colour, places.env, sys.stdout),
            now=time.time(),
        )

    @property
    def cache(self) -> Path:
        """The folder of what can be computed again."""
        return cache_dir(self.settings, self.places.env, self.places.home)

    @property
    def state(self) -> Path:
        """The folder of the daemon's store, sockets and spool."""
        return state_dir(self.places.env, self.places.home)


def terminal_width(env: Mapping[str, str], default: int = 100) -> int:
    """Return COLUMNS, else the terminal's width, else the default."""
    # As shutil.get_terminal_size, whose import takes 3 ms.
    columns = env.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size().columns or default
    except OSError:  # standard output is closed or no terminal
        return default


def wants_colour(setting: str, env: Mapping[str, str], out: TextIO) -> bool:
    """Apply the setting; `auto` is True on a terminal that is not dumb, unless NO_COLOR is set."""
    if setting != "auto":
        return setting == "always"
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR"):
        return True
    return out.isatty() and env.get("TERM") != "dumb"


def screen_height(env: Mapping[str, str], out: TextIO) -> int | None:
    """Return the rows of the terminal; None if the output does not go to one."""
    if not out.isatty():
        return None
    rows = env.get("LINES", "")
    if rows.isdecimal() and int(rows) > 0:
        return int(rows)
    try:
        return os.get_terminal_size().lines or None
    except OSError:
        return None


def prepare_output(env: Mapping[str, str]) -> None:
    """Have both outputs print ASCII unless the locale and their encoding are UTF-8."""
    for out in (sys.stdout, sys.stderr):
        if reconfigure := getattr(out, "reconfigure", None):
            encoding = None if _uses_utf8(env, out) else "ascii"
            reconfigure(encoding=encoding, errors=LOOK_ALIKES)


def _uses_utf8(env: Mapping[str, str], out: TextIO) -> bool:
    # The locale counts too: in that named C, Python itself has chosen UTF-8 (PEP 540).
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or out.encoding
    if env.get("LANG") in ("C", "POSIX") and locale == "C.UTF-8":
        return False  # Python itself has set LC_CTYPE (PEP 538)
    return all("utf" in encoding.lower() for encoding in (locale, out.encoding))


def as_json(value: object) -> str:
    return escape_control(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()) + "\n"


def emit_json(value: object) -> None:
    sys.stdout.write(as_json(value))


def print_problems(problems: Iterable[str]) -> None:
    for problem in problems:
        print(f"brimline: {strip_control(problem)}", file=sys.stderr)


def print_table(
    context: CommandContext, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]
) -> None:
    print("\n".join(format_table(columns, rows, context.width, context.colour)))


def print_store_problems(context: CommandContext) -> None:
    """Print what happened to the store last, also if no daemon runs."""
    from brimline.store.problems import open_problems  # it takes logging along: 10 ms

    problems = open_problems(context.state, context.now)
    if not problems:
        return
    text = f"{problems[-1].what} {problems[-1].advice}"
    if len(problems) > 1:
        text += f" `brimline doctor` lists {count_of(len(problems), 'problem')}."
    print(f"brimline: {strip_control(text)}", file=sys.stderr)
