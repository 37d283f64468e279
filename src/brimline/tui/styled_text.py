"""Lines of styled text, drawn by Textual or printed with ANSI codes."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias, get_args

from brimline.terminal.text import Shade, cell_width, colourize, truncate

_ANSI_CODE = re.compile("(\x1b\\[[0-9;]*m)")
_SHADE_OF_CODE: dict[str, Shade] = {
    colourize("x", shade, True).partition("x")[0]: shade for shade in get_args(Shade)
}


class StyledText(NamedTuple):
    """Text in a shade, or in one of the 256 colours of a terminal."""

    text: str
    shade: Shade = "none"
    colour: int | None = None


Line: TypeAlias = Sequence[StyledText]


def line_width(line: Line) -> int:
    return sum(cell_width(piece.text) for piece in line)


def to_plain(line: Line) -> str:
    return "".join(piece.text for piece in line).rstrip()


def to_ansi(line: Line, colour: bool) -> str:
    return "".join(
        colourize(piece.text, piece.shade, colour and not piece.text.isspace()) for piece in line
    ).rstrip()


def parse_ansi(text: str) -> Line:
    """The spans of a text that `colourize` coloured."""
    line: list[StyledText] = []
    shade: Shade = "none"
    for part in _ANSI_CODE.split(text):
        if part.startswith("\x1b["):
            shade = _SHADE_OF_CODE.get(part, "none")
        elif part:
            line.append(StyledText(part, shade))
    return line


def pad(
    text: str, width: int, shade: Shade = "none", right: bool = False, keep_end: bool = False
) -> StyledText:
    """A span of exactly `width` columns: truncated, or padded with blanks."""
    fitted = truncate(text, width, keep_end) if width > 0 else ""
    space = " " * (width - cell_width(fitted))
    return StyledText(space + fitted if right else fitted + space, shade)


def wrap_text(text: str, width: int) -> list[str]:
    """The lines of a text, each at most `width` columns, broken at blanks if possible."""
    lines: list[str] = []
    for word in text.split():
        if lines and cell_width(lines[-1]) + 1 + cell_width(word) <= width:
            lines[-1] += f" {word}"
            continue
        lines += _split_word(word, width)
    return lines


def _split_word(word: str, width: int) -> Iterable[str]:
    part = ""
    for letter in word:
        if part and cell_width(part) + cell_width(letter) > width:
            yield part
            part = ""
        part += letter
    yield part
