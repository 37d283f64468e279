"""A tmux pane as it was captured: its rows, which letters are dim, and where the cursor is."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

_PARTS = re.compile(
    r"\x1b\[([0-9;:]*)m"  # colours and weight: the only ones that matter
    r"|\x1b\[[0-9;:?]*[A-Za-ln-z]"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[()][0-9A-Z]"
    r"|[\x0e\x0f]"
    r"|([^\x1b\x0e\x0f])",
    re.DOTALL,
)
_COLOURS = ("38", "48", "58")
"""After these come a colour's own numbers, among which a 2 does not mean dim."""


NEAR = 12
"""So many of the last rows of a conversation are remembered, to see that they are gone."""


class Letter(NamedTuple):
    """One character of a row, the column that it begins at, and whether it is dim."""

    char: str
    column: int
    dim: bool


class Row(msgspec.Struct, frozen=True):
    """One row, without what its end is filled up with."""

    letters: tuple[Letter, ...]

    @property
    def text(self) -> str:
        """What it says."""
        return "".join(letter.char for letter in self.letters).rstrip()

    def after(self, column: int) -> tuple[Letter, ...]:
        """What stands from a column on and is no blank."""
        return tuple(one for one in self.letters if one.column >= column and one.char.strip())


class Screen(msgspec.Struct, frozen=True):
    """All rows of a pane; the cursor's column and row are counted from 0."""

    rows: tuple[Row, ...]
    x: int
    y: int
    shown: bool
    """Whether the terminal shows its cursor."""

    @property
    def text(self) -> str:
        """What it says, row below row."""
        return "\n".join(row.text for row in self.rows)

    def row(self, place: int) -> str:
        """What a row says; nothing where there is none."""
        return self.rows[place].text if 0 <= place < len(self.rows) else ""


def screen(lines: Iterable[str], x: int, y: int, shown: bool = True) -> Screen:
    """A screen of the lines that `tmux capture-pane -p -e` gives."""
    return Screen(tuple(_rows(lines)), x, y, shown)


def _rows(lines: Iterable[str]) -> Iterator[Row]:
    """The rows; what is switched on in one stays on in the next."""
    dim = False
    for line in lines:
        letters: list[Letter] = []
        column = 0
        for part in _PARTS.finditer(line):
            if part[1] is not None:
                dim = _dim(part[1], dim)
            elif part[2] is not None:
                letters.append(Letter(part[2], column, dim))
                column += _width(part[2])
        yield Row(tuple(letters))


def _dim(codes: str, dim: bool) -> bool:
    """Whether letters are dim after an escape sequence."""
    numbers = iter(codes.split(";"))
    for number in numbers:
        if number in _COLOURS:
            for _ in range(3 if next(numbers, "") == "2" else 1):
                next(numbers, "")
        elif number in ("", "0", "22"):
            dim = False
        elif number == "2":
            dim = True
    return dim


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def rows_of(screen: Screen) -> tuple[str, ...]:
    """The last rows above the cursor that say something, by their hashes."""
    said = [row.text for row in screen.rows[: screen.y] if row.text.strip("─▄▀ ")]
    return tuple(_hash(text) for text in said[-NEAR:])


def is_cleared(rows: tuple[str, ...], after: Screen | None) -> bool:
    """Whether half of the rows that stood in a pane before are gone from it."""
    if after is None:
        return False
    shown = {_hash(row.text) for row in after.rows}
    return 2 * sum(row not in shown for row in rows) >= len(rows)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
