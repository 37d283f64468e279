"""The captured screen of a tmux pane, and the composer in it: the box in which the user types.

The patterns of composers were recorded with the client versions in tests/clients/versions.toml. A
screen that does not match, such as a dialog or a newer client, is unknown, and nothing is typed
into it.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from brimline.agents import capabilities_of
from brimline.agents.capabilities import ComposerPatterns
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

# busy, compacting: the composer is empty while the agent or its client works.
# scrolled: the pane is in copy mode, and its composer is not visible.
ComposerState: TypeAlias = Literal["empty", "typed", "busy", "compacting", "scrolled", "unknown"]

STATUS_ROWS = 12  # rows above a composer that can show the client's status; above is conversation
MAX_COMPOSER_ROWS = 60


class ScreenCell(NamedTuple):
    """One character and the column at which it begins."""

    char: str
    column: int
    dim: bool


class ScreenRow(msgspec.Struct, frozen=True):
    cells: tuple[ScreenCell, ...]

    @property
    def text(self) -> str:
        """The text without trailing blanks."""
        return self.text_from(0).rstrip()

    def text_from(self, column: int) -> str:
        return "".join(cell.char for cell in self.cells if cell.column >= column)


class Screen(msgspec.Struct, frozen=True):
    """All rows of a pane; the cursor's column and row count from 0."""

    rows: tuple[ScreenRow, ...]
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
    rows: list[ScreenRow] = []
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
        rows.append(ScreenRow(tuple(cells)))
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


class Composer(msgspec.Struct, frozen=True):
    """What an agent's composer contains."""

    state: ComposerState
    text: str = ""


UNKNOWN, SCROLLED = Composer("unknown"), Composer("scrolled")


class ComposerBox(msgspec.Struct, frozen=True):
    """The composer's rows, from `top` to before `bottom`; its text begins at column `left`."""

    top: int
    bottom: int
    left: int


def read_composer(agent: str, screen: Screen) -> Composer:
    """Return what an agent's composer contains; unknown unless the screen matches for certain."""
    composer = _find_composer(agent, screen)
    if composer is None:
        return UNKNOWN
    patterns, box = composer
    text = "\n".join(row.text_from(box.left) for row in screen.rows[box.top : box.bottom]).strip()
    if text and not _is_placeholder(patterns, screen, box, text):
        return Composer("typed", text)
    above = screen.rows_text(max(0, box.top - STATUS_ROWS), box.top)
    below = screen.rows_text(box.bottom, len(screen.rows))
    if _search(patterns.compacting, above):
        return Composer("compacting")
    is_busy = _search(patterns.busy_above, above) or _search(patterns.busy_below, below)
    return Composer("busy" if is_busy else "empty")


def has_queued(agent: str, screen: Screen) -> bool:
    """Whether a prompt of the user waits above the composer to be read by the agent."""
    composer = _find_composer(agent, screen)
    if composer is None:
        return False
    patterns, box = composer
    rows = screen.rows_text(max(0, box.top - STATUS_ROWS), box.bottom)
    return _search(patterns.queued, rows)


def _find_composer(agent: str, screen: Screen) -> tuple[ComposerPatterns, ComposerBox] | None:
    """Find the composer that the cursor is in, and its patterns."""
    patterns, cursor = capabilities_of(agent).composer, screen.cursor_y
    if patterns is None or (patterns.cursor_visible and not screen.cursor_visible):
        return None
    for top in range(cursor, max(-1, cursor - MAX_COMPOSER_ROWS), -1):
        # Trailing blanks are not part of a row's text, and the pattern may end in some.
        start = re.match(patterns.first, screen.row(top) + "   ")
        if start and re.fullmatch(patterns.above, screen.rows_text(top - 2, top)):
            break
    else:
        return None
    for bottom in range(cursor + 1, min(len(screen.rows), cursor + MAX_COMPOSER_ROWS)):
        rows_below = screen.rows_text(bottom, len(screen.rows))
        if re.match(rf"(?:{patterns.below})(?:\n|\Z)", rows_below):
            break
    else:
        return None
    if not all(re.fullmatch(patterns.rest, screen.row(row)) for row in range(top + 1, bottom)):
        return None
    return patterns, ComposerBox(top, bottom, start.end())


def _is_placeholder(
    patterns: ComposerPatterns, screen: Screen, box: ComposerBox, text: str
) -> bool:
    """Whether the text is the client's own hint: then the cursor stands before it."""
    if (screen.cursor_x, screen.cursor_y) != (box.left, box.top):
        return False
    if patterns.placeholder is not None:
        return re.fullmatch(patterns.placeholder, text) is not None
    # The character below a block cursor is drawn in reverse, and is not dim.
    cells = [
        cell
        for place in range(box.top, box.bottom)
        for cell in screen.rows[place].cells
        if cell.column >= box.left
        and cell.char.strip()
        and (place, cell.column) != (screen.cursor_y, screen.cursor_x)
    ]
    return bool(cells) and all(cell.dim for cell in cells)


def _search(pattern: str, rows: str) -> bool:
    return re.search(pattern, rows, re.MULTILINE) is not None
