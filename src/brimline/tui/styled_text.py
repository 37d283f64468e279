"""Lines as pieces of text with a shade, so that a frame and the screen show the same."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from brimline.terminal.text import Shade as PaintShade
from brimline.terminal.text import cell_width, colourize, truncate

Shade: TypeAlias = Literal["low", "medium", "high", "full", "dim", "bold", "chosen", "none"]
"""Paint's shades; `full`: the limit is reached, that alone is red; `chosen` is where one is."""

_CODES: dict[Shade, str] = {
    "low": "32",
    "medium": "33",
    "high": "93",
    "full": "1;31",
    "dim": "2",
    "bold": "1",
    "chosen": "7",
    "none": "",
}
_PAINTED = re.compile("(\x1b\\[[0-9;]*m)")
_SHADES: dict[str, Shade] = {
    colourize("x", shade, True).partition("x")[0]: shade for shade in get_args(PaintShade)
}


class Piece(NamedTuple):
    """Some text of a line."""

    text: str
    shade: Shade = "none"


Line: TypeAlias = Sequence[Piece]


def width_of(line: Line) -> int:
    """How many columns a line takes."""
    return sum(cell_width(piece.text) for piece in line)


def plain(line: Line) -> str:
    """A line without its shades."""
    return "".join(piece.text for piece in line).rstrip()


def ansi(line: Line, colour: bool) -> str:
    """A line for a terminal's own colours."""
    if not colour:
        return plain(line)
    return "".join(_coloured(piece) for piece in line).rstrip()


def _coloured(piece: Piece) -> str:
    code = _CODES[piece.shade]
    return f"\x1b[{code}m{piece.text}\x1b[0m" if code and piece.text.strip() else piece.text


def from_painted(text: str) -> Line:
    """The pieces of a text that was painted by `paint`."""
    line: list[Piece] = []
    shade: Shade = "none"
    for part in _PAINTED.split(text):
        if part.startswith("\x1b["):
            shade = _SHADES.get(part, "none")
        elif part:
            line.append(Piece(part, shade))
    return line


def field(
    text: str, width: int, shade: Shade = "none", right: bool = False, keep_end: bool = False
) -> Piece:
    """A piece of just so many columns: cut, or filled with blanks."""
    shown = truncate(text, width, keep_end) if width > 0 else ""
    space = " " * (width - cell_width(shown))
    return Piece(space + shown if right else shown + space, shade)


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines of at most so many columns, broken at blanks where there are any."""
    lines: list[str] = []
    for word in text.split():
        if lines and cell_width(lines[-1]) + 1 + cell_width(word) <= width:
            lines[-1] += f" {word}"
            continue
        lines += _broken(word, width)
    return lines


def _broken(word: str, width: int) -> Iterable[str]:
    """A word in parts that fit; the width of a letter decides, not their number."""
    part = ""
    for letter in word:
        if part and cell_width(part) + cell_width(letter) > width:
            yield part
            part = ""
        part += letter
    yield part
