"""The captured screen of a tmux pane: its rows, which characters are dim, and the cursor."""

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from brimline.terminal.text import cell_width

_PARTS = re.compile(
    r"\x1b\[([0-9;:]*)m"  # colours and weight
    r"|\x1b\[[0-9;:?]*[A-Za-ln-z]"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[()][0-9A-Z]"
    r"|[\x0e\x0f]"
    r"|([^\x1b\x0e\x0f])",
    re.DOTALL,
)
_COLOUR_CODES = ("38", "48", "58")  # a 2 in the colour's own numbers that follow is not "dim"

HASHED_ROWS = 12


class ScreenCell(NamedTuple):
    """One character and the column at which it begins."""

    char: str
    column: int
    dim: bool


class Row(msgspec.Struct, frozen=True):
    cells: tuple[ScreenCell, ...]

    @property
    def text(self) -> str:
        """The text without trailing blanks."""
        return self.text_from(0).rstrip()

    def text_from(self, column: int) -> str:
        return "".join(cell.char for cell in self.cells if cell.column >= column)


class Screen(msgspec.Struct, frozen=True):
    """All rows of a pane; the cursor's column and row count from 0."""

    rows: tuple[Row, ...]
    cursor_x: int
    cursor_y: int
    cursor_visible: bool

    @property
    def text(self) -> str:
        return self.rows_text(0, len(self.rows))

    def rows_text(self, start: int, end: int) -> str:
        """The text of the rows from `start` to before `end`; rows outside the screen are empty."""
        return "\n".join(self.row(place) for place in range(start, end))

    def row(self, place: int) -> str:
        """The text of a row; empty outside the screen."""
        return self.rows[place].text if 0 <= place < len(self.rows) else ""


def parse_screen(lines: Iterable[str], x: int, y: int, cursor_visible: bool = True) -> Screen:
    """Parse the output of `tmux capture-pane -p -e`."""
    rows: list[Row] = []
    dim = False  # attributes continue into the next row
    for line in lines:
        cells: list[ScreenCell] = []
        column = 0
        for part in _PARTS.finditer(line):
            if part[1] is not None:
                dim = _is_dim_after(part[1], dim)
            elif part[2] is not None:
                cells.append(ScreenCell(part[2], column, dim))
                column += cell_width(part[2])
        rows.append(Row(tuple(cells)))
    return Screen(tuple(rows), x, y, cursor_visible)


def _is_dim_after(codes: str, dim: bool) -> bool:
    numbers = iter(codes.split(";"))
    for number in numbers:
        if number in _COLOUR_CODES:
            for _ in range(3 if next(numbers, "") == "2" else 1):
                next(numbers, "")
        elif number in ("", "0", "22"):
            dim = False
        elif number == "2":
            dim = True
    return dim


def conversation_hashes(screen: Screen) -> tuple[str, ...]:
    """Hash the last rows with text above the cursor, to see later whether they are gone."""
    texts = [row.text for row in screen.rows[: screen.cursor_y] if row.text.strip("─▄▀ ")]
    return tuple(_hash(text) for text in texts[-HASHED_ROWS:])


def is_cleared(hashes: tuple[str, ...], screen: Screen | None) -> bool:
    """Whether at least half of the hashed rows are gone from the screen."""
    if screen is None:
        return False
    present = {_hash(row.text) for row in screen.rows}
    return 2 * sum(row not in present for row in hashes) >= len(hashes)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
