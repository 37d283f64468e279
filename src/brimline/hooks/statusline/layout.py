"""Parts of a line, as many as a terminal has room for; never cut in the middle of one."""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

RESET = "\x1b[0m"


class Part(NamedTuple):
    """A text, and the same with its colours: the width is that of the text."""

    text: str
    shown: str


def plain_part(text: str) -> Part:
    """A part without a colour."""
    return Part(text, text)


def coloured_part(text: str, code: str) -> Part:
    """A part in a colour, by its code."""
    return Part(text, f"\x1b[{code}m{text}{RESET}") if code else plain_part(text)


def join_parts(parts: Sequence[Part], between: str) -> Part:
    """Parts in a row, with something between them."""
    return Part(between.join(part.text for part in parts), between.join(p.shown for p in parts))


def fit_parts(parts: Sequence[Sequence[Part]], between: str, columns: int | None) -> str:
    """A line of parts, each in its ways from wide to narrow.

    Too wide for the columns, it loses parts from the end; the last that is left becomes narrower.
    """
    for count in range(len(parts), 1, -1):
        whole = join_parts([ways[0] for ways in parts[:count]], between)
        if columns is None or cells(whole.text) <= columns:
            return whole.shown
    return _widest_that_fits(parts[0], columns).shown if parts else ""


def _widest_that_fits(ways: Sequence[Part], columns: int | None) -> Part:
    """The widest way that fits; the narrowest where none does."""
    fits = (way for way in ways if columns is None or cells(way.text) <= columns)
    return next(fits, ways[-1])


def cells(text: str) -> int:
    """How many columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


@lru_cache(maxsize=1024)
def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
