"""The composer of an agent's client, the box in which the user types, as its pane shows it.

The patterns were recorded with the client versions in tests/clients/versions.toml. A screen that
does not match, such as a dialog or a newer client, is unknown, and nothing is typed into it.
"""

import re
from typing import Literal, TypeAlias

import msgspec

from brimline.agents import capabilities_of
from brimline.agents.capabilities import ComposerPatterns
from brimline.daemon.tmux.screen import Screen

# busy, compacting: the composer is empty while the agent or its client works.
# scrolled: the pane is in copy mode, and its composer is not visible.
ComposerState: TypeAlias = Literal["empty", "typed", "busy", "compacting", "scrolled", "unknown"]

STATUS_ROWS = 12  # rows above a composer that can show the client's status; above is conversation
MAX_COMPOSER_ROWS = 60


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
