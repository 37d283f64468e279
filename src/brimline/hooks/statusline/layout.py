"""Parts of a line: as many as fit the terminal, never cut in the middle."""

from collections.abc import Sequence
from typing import NamedTuple

from brimline.terminal.text import cell_width

RESET = "\x1b[0m"


class Part(NamedTuple):
    """A text, and the same with its colours; the width is that of the text."""

    text: str
    shown: str


def plain_part(text: str) -> Part:
    """Return a part without colour."""
    return Part(text, text)


def coloured_part(text: str, code: str) -> Part:
    """Return a part in the colour of an SGR code; an empty code is no colour."""
    return Part(text, f"\x1b[{code}m{text}{RESET}") if code else plain_part(text)


def join_parts(parts: Sequence[Part], separator: str) -> Part:
    """Return several parts as one."""
    return Part(separator.join(part.text for part in parts), separator.join(p.shown for p in parts))


def fit_parts(parts: Sequence[Sequence[Part]], separator: str, columns: int | None) -> str:
    """Return a line of parts, each given in variants from wide to narrow.

    A line that is too wide loses parts from its end; the last part may become narrower.
    """
    for count in range(len(parts), 1, -1):
        line = join_parts([variants[0] for variants in parts[:count]], separator)
        if columns is None or cell_width(line.text) <= columns:
            return line.shown
    return _widest_that_fits(parts[0], columns).shown if parts else ""


def _widest_that_fits(variants: Sequence[Part], columns: int | None) -> Part:
    fitting = (part for part in variants if columns is None or cell_width(part.text) <= columns)
    return next(fitting, variants[-1])
