"""What every command is given: the places, the settings, and where it writes."""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import msgspec

from brimline.settings import Settings, cache_dir
from brimline.transcripts.source import Places


class Context(msgspec.Struct, frozen=True):
    """Where to look, what the user wants, and what the output can show."""

    places: Places
    settings: Settings
    width: int
    colour: bool
    now: float

    @classmethod
    def for_terminal(cls, places: Places, settings: Settings) -> "Context":
        return cls(
            places=places,
            settings=settings,
            width=terminal_width(places.env),
            colour=wants_colour(settings.colour, places.env, sys.stdout),
            now=time.time(),
        )

    @property
    def cache(self) -> Path:
        """Where what can be made anew is kept."""
        return cache_dir(self.settings, self.places.env, self.places.home)


def terminal_width(env: Mapping[str, str]) -> int:
    """Return COLUMNS, else the terminal's width, else 100."""
    # As shutil.get_terminal_size, whose import takes 3 ms.
    columns = env.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size().columns or 100
    except OSError:  # standard output is closed or no terminal
        return 100


def wants_colour(wish: str, env: Mapping[str, str], out: TextIO) -> bool:
    """Whether to colour: as told; else on a terminal that is not dumb, unless NO_COLOR is set."""
    if wish != "auto":
        return wish == "always"
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR"):
        return True
    return out.isatty() and env.get("TERM") != "dumb"


def as_json(value: object) -> str:
    """A value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def emit_json(value: object) -> None:
    """Write a value as indented JSON."""
    sys.stdout.write(as_json(value))
