"""Text for a terminal: colours, bars, ages, and columns that fit."""

import codecs
import os
import re
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

Shade: TypeAlias = Literal["low", "medium", "high", "limit", "dim", "bold", "selected", "none"]

_CODES: dict[Shade, str] = {
    "low": "32",
    "medium": "33",
    "high": "31",
    "limit": "1;31",
    "dim": "2",
    "bold": "1",
    "selected": "7",
    "none": "",
}
_EIGHTHS = " ▏▎▍▌▋▊▉█"
GAP = "  "


def colourize(text: str, how: Shade, colour: bool) -> str:
    if not colour or how == "none" or not text:
        return text
    return f"\x1b[{_CODES[how]}m{text}\x1b[0m"


def strip_control(text: str) -> str:
    """Replace everything that a terminal would interpret."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def escape_control(json_text: str) -> str:
    """Escape in JSON what a terminal would interpret or cannot show; its values stay the same.

    JSON itself requires that only of U+0000 to U+001F: not of U+009B, which is `ESC [`, and not of
    U+202E, which reverses the text after it.
    """
    return re.sub(r"[^\n -~]", _escape, json_text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character.isprintable() and sys.stdout.encoding != "ascii":
        return character
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def cell_width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def truncate(text: str, width: int, keep_end: bool = False) -> str:
    """Cut a text to `width` columns, with … in place of the rest."""
    if cell_width(text) <= width:
        return text
    letters = list(reversed(text)) if keep_end else list(text)
    shown: list[str] = []
    room = width - 1
    for letter in letters:
        room -= cell_width(letter)
        if room < 0:
            break
        shown.append(letter)
    return "…" + "".join(reversed(shown)) if keep_end else "".join(shown) + "…"


def draw_bar(percent: float | None, width: int, whole_cells: bool = False) -> str:
    """Draw a bar of `width` columns, in eighths unless `whole_cells`; dots if unknown."""
    if percent is None:
        return "·" * width
    cells = width * min(100.0, percent) / 100
    full, part = (int(cells), 0) if whole_cells else divmod(round(cells * 8), 8)
    drawn = "█" * full + (_EIGHTHS[part] if part else "")
    return drawn + "░" * (width - len(drawn))


# What our surfaces draw, and what is frequent in titles; no quotation mark, which CSV would need
# to escape.
_LOOK_ALIKES = str.maketrans(
    "█▉▊▋▌▍▎▏░▇▆▅▄▃▂▁▀─╌│┃╎┤├┼└·…▲▸◆●○◌›❯≥→←↑↓–—‘’“”•×",
    "#####----##===__^--||:||+`.~^>**oo>>>><^v--''''*x",
)


def replace_by_look_alikes(error: UnicodeError) -> tuple[str, int]:
    """Handle characters that an output cannot encode: ASCII of the same width, `?` for others."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_LOOK_ALIKES)
    return "".join(c if c.isascii() else "?" * cell_width(c) for c in text), error.end


LOOK_ALIKES = "look-alikes"  # the name of this handler for `errors=`
codecs.register_error(LOOK_ALIKES, replace_by_look_alikes)


def encode_output(text: str) -> bytes:
    """Encode as standard output does, for what is written to its file descriptor."""
    return text.encode(sys.stdout.encoding or "utf-8", LOOK_ALIKES)


def count_of(number: int, noun: str) -> str:
    """Format a count with its noun: 1 call, 2 calls."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"


def format_age(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{max(0, seconds):.0f}s"


class Cell(msgspec.Struct, frozen=True):
    text: str
    shade: Shade = "none"


class Column(msgspec.Struct, frozen=True):
    """A column; it may be cut to `min_width`, and the highest `drop_order` is dropped first.

    A column with `drop_order` 0 always stays.
    """

    title: str
    right: bool = False
    min_width: int | None = None
    keep_end: bool = False
    drop_order: int = 0


def format_table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int, colour: bool
) -> list[str]:
    """Return the lines of a table that fits the width."""
    wide = [
        max([cell_width(column.title), *(cell_width(row[i].text) for row in rows)])
        for i, column in enumerate(columns)
    ]
    shown = _fit(columns, wide, width)
    head = [Cell(column.title, "dim") for column in columns]
    return [_line(columns, row, shown, colour) for row in (head, *rows)]


def _fit(columns: Sequence[Column], wide: list[int], width: int) -> dict[int, int]:
    """Return the width of each column that is shown."""
    shown = dict(enumerate(wide))
    while (over := sum(shown.values()) + len(GAP) * (len(shown) - 1) - width) > 0:
        loose = {
            i: shown[i] - least
            for i in shown
            if (least := columns[i].min_width) is not None and shown[i] > least
        }
        if sum(loose.values()) >= over:
            _shrink(shown, loose, over)
            break
        going = max(shown, key=lambda i: columns[i].drop_order)
        if columns[going].drop_order == 0:
            _shrink(shown, loose, sum(loose.values()))
            break
        del shown[going]
    return shown


def _shrink(shown: dict[int, int], loose: dict[int, int], over: int) -> None:
    """Narrow the columns that have the most to give."""
    for _ in range(over):
        i = max(loose, key=lambda j: loose[j])
        loose[i] -= 1
        shown[i] -= 1


def _line(
    columns: Sequence[Column], row: Sequence[Cell], shown: dict[int, int], colour: bool
) -> str:
    fields: list[str] = []
    for i, width in shown.items():
        text = truncate(row[i].text, width, columns[i].keep_end)
        space = " " * (width - cell_width(text))
        drawn = colourize(text, row[i].shade, colour)
        fields.append(space + drawn if columns[i].right else drawn + space)
    return GAP.join(fields).rstrip()


def join_facts(facts: Sequence[str], width: int) -> list[str]:
    """Put facts on as few lines as they fit; none is cut, because users copy paths and ids."""
    lines: list[str] = []
    for fact in map(strip_control, facts):
        joined = f"{lines[-1]}{GAP}{fact}" if lines else fact
        if lines and cell_width(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(fact)
    return lines


def shorten_home(path: str, home: Path) -> str:
    inside = path == str(home) or path.startswith(f"{home}{os.sep}")
    return "~" + path[len(str(home)) :] if inside else path


def spreadsheet_value(value: object) -> object:
    """Return a value for a CSV cell, which a terminal or a spreadsheet shows as it is."""
    if not isinstance(value, str):
        return "" if value is None else value
    # A spreadsheet would compute a text that begins like a formula.
    return strip_control(f"'{value}" if value.startswith(("=", "+", "-", "@")) else value)
