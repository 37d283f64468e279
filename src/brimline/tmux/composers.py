"""The composer of an agent's client, the box in which the user types, as its pane shows it.

The patterns were recorded with the client versions in tests/clients/versions.toml. A screen that
does not match, such as a dialog or a newer client, is unknown, and nothing is typed into it.
"""

import re
from typing import Literal, TypeAlias

import msgspec

from brimline.tmux.screen import Screen

# busy, compacting: the composer is empty while the agent or its client works.
# scrolled: the pane is in copy mode, and its composer is not visible.
ComposerState: TypeAlias = Literal["empty", "typed", "busy", "compacting", "scrolled", "unknown"]

STATUS_ROWS = 12  # rows above a composer that can show the client's status; above is conversation
MAX_COMPOSER_ROWS = 60
NEVER = r"(?!)"


class Composer(msgspec.Struct, frozen=True):
    """What an agent's composer contains."""

    state: ComposerState
    text: str = ""


UNKNOWN, SCROLLED = Composer("unknown"), Composer("scrolled")


class ComposerPatterns(msgspec.Struct, frozen=True, kw_only=True):
    """How a client draws its composer: regular expressions over the text of rows.

    A composer begins at the first row, upwards from the cursor, that matches `first` below rows
    that match `above`, and ends before the first rows that match `below`.
    """

    above: str = r".*\n.*"  # the two rows above
    first: str  # the beginning of the first row; the text starts after it
    rest: str = r".*"  # each other row
    below: str  # one or more rows
    cursor_visible: bool = False  # whether the client shows the terminal's own cursor
    placeholder: str | None = None  # the hint of an empty composer; None: any dim text
    busy_above: str = NEVER
    busy_below: str = NEVER
    compacting: str = NEVER
    queued: str = NEVER  # prompts that were submitted and not yet read by the agent


COMPOSERS: dict[str, ComposerPatterns] = {
    "claude": ComposerPatterns(
        above=r".*\n─{10,}.*",
        first="❯[\N{NO-BREAK SPACE} ]",
        rest=r"(?!─{10,}).*",
        below=r"─{10,}",
        busy_above=r"^[·✢✳✶✻✽*] \w[^…\n]*…( \(.*)?$",
        busy_below=r"esc to interrupt",
        compacting=r"^\S (Compacting conversation|Running P(re|ost)Compact hooks)",
        queued=r"^  \S+( \S+)? to send now$|^❯.Press up to .*queued",
    ),
    "codex": ComposerPatterns(
        first=r"›.",
        rest=r"(  .*)?",
        below=r"\n(.*\n)?.+\s*\Z",  # a blank row, then one or two rows to the end of the screen
        cursor_visible=True,
        busy_above=r"^\S \w.*esc to interrupt\)",
    ),
    "gemini": ComposerPatterns(
        above=r".*\n▄{10,}",
        first=r" [*>] ",
        rest=r"(?!▄{10,}).*",
        below=r"▀{10,}",
        placeholder=r"Type your message or @path/to/file",
        busy_above=r"^ \S .*\(esc to cancel",
    ),
    "pi": ComposerPatterns(
        above=r".*\n─{2,}.*─",
        first=r"",
        below=r"─{2,}.*─",
        busy_above=r"^──+ [^─↑\s].*─$",
    ),
    "opencode": ComposerPatterns(
        above=r"(?! *┃).*\n *┃",
        first=r" *┃  ",
        rest=r" *┃.*",
        below=r" *┃\n *┃  \S.* · \S.*\n *╹▀{10,}",  # a blank row, agent and model, the edge
        placeholder=r"Ask anything\.\.\..*",
        busy_below=r"esc interrupt",
    ),
}


class ComposerBox(msgspec.Struct, frozen=True):
    """The composer's rows, from `top` to before `bottom`; its text begins at column `left`."""

    top: int
    bottom: int
    left: int


def read_composer(agent: str, screen: Screen) -> Composer:
    """Return what an agent's composer contains; unknown unless the screen matches for certain."""
    patterns = COMPOSERS.get(agent)
    box = _find_box(patterns, screen) if patterns is not None else None
    if patterns is None or box is None:
        return UNKNOWN
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
    patterns = COMPOSERS.get(agent)
    box = _find_box(patterns, screen) if patterns is not None else None
    if patterns is None or box is None:
        return False
    rows = screen.rows_text(max(0, box.top - STATUS_ROWS), box.bottom)
    return _search(patterns.queued, rows)


def _find_box(patterns: ComposerPatterns, screen: Screen) -> ComposerBox | None:
    """Find the composer that the cursor is in."""
    cursor = screen.cursor_y
    if patterns.cursor_visible and not screen.cursor_visible:
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
    return ComposerBox(top, bottom, start.end())


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
