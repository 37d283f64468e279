"""Drawings in text: a thread's occupancy over its calls, and a bar of several coloured parts."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgspec

from brimline.context.policy.levels import compare_levels
from brimline.context.usage import format_tokens, percent_raw
from brimline.terminal import colours
from brimline.terminal.text import Shade, colourize, count_of

HEIGHT = 10
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_LABEL = 7

FREE = "·"
BLOCK = "█"

UNEXPLAINED = "unexplained"
# A letter and a colour of the 256 for each category of the ledger.
LOOKS = {
    "system and tools": ("S", "244"),
    "memory files": ("M", "141"),
    "user words": ("U", "214"),
    "agent's words": ("A", "75"),
    "reasoning": ("R", "68"),
    "tool calls": ("C", "79"),
    "tool results": ("T", "36"),
    "images": ("I", "175"),
    "injected context": ("J", "180"),
    "subagent results": ("G", "29"),
    "compaction summary": ("Z", "103"),
    UNEXPLAINED: ("?", "238"),
}


def chart(
    sent: Sequence[int],
    compactions: Sequence[int],
    window: int | None,
    limit: int | None,
    levels: Sequence[float],
    width: int,
    colour: bool,
) -> list[str]:
    """Columns of what was sent, up to the window; the limit is a line, a compaction a mark below.

    A column has the colour of the levels, in percent of the window, and the limit that it reaches.
    Where there are more calls than columns, a column stands for several and shows the highest.
    """
    room = max(10, width - _LABEL - 2)
    top = max(window or 1, *sent)
    columns = _columns(sent, room)
    line = _row_of(limit, top) if limit is not None and limit < top else None
    shades: list[Shade] = [_shade(tokens, window, limit, levels) for tokens in columns]
    rows = [_row(columns, shades, top, row, line, colour) for row in reversed(range(HEIGHT))]
    labels = {HEIGHT - 1: format_tokens(top)}
    if limit is not None and line is not None:
        labels[line] = format_tokens(limit)
    drawn = [
        f"{labels.get(row, ''):>{_LABEL}} {'┼' if row == line else '┤'}{text}"
        for row, text in zip(reversed(range(HEIGHT)), rows, strict=True)
    ]
    axis = f"{'0':>{_LABEL}} └" + _axis(len(sent), len(columns), compactions)
    legend = _legend(len(sent), compactions, line is not None)
    indent = max(0, min(_LABEL + 2, width - len(legend)))
    return [*drawn, axis, " " * indent + legend]


def _columns(sent: Sequence[int], room: int) -> list[int]:
    if len(sent) <= room:
        return list(sent)
    return [max(sent[i * len(sent) // room : (i + 1) * len(sent) // room]) for i in range(room)]


def _row_of(tokens: int, top: int) -> int:
    return min(HEIGHT - 1, tokens * HEIGHT // top)


def _shade(tokens: int, window: int | None, limit: int | None, levels: Sequence[float]) -> Shade:
    figure = percent_raw(tokens, window)
    if figure is None:
        return "none"
    if figure >= 100 or (limit is not None and tokens >= limit):
        return "limit"
    return compare_levels(figure, levels)


def _row(
    columns: Sequence[int],
    shades: Sequence[Shade],
    top: int,
    row: int,
    line: int | None,
    colour: bool,
) -> str:
    drawn: list[str] = []
    for tokens, shade in zip(columns, shades, strict=True):
        eighths = round(tokens / top * HEIGHT * 8) - row * 8
        block = _EIGHTHS[max(0, min(8, eighths))]
        if block == " ":
            drawn.append(colourize("╌", "dim", colour) if row == line else " ")
        else:
            drawn.append(colourize(block, shade, colour))
    return "".join(drawn).rstrip()


def _axis(calls: int, columns: int, compactions: Sequence[int]) -> str:
    marks = ["─"] * columns
    for after in compactions:
        marks[min(columns - 1, after * columns // calls)] = "▲"
    return "".join(marks)


def _legend(calls: int, compactions: Sequence[int], limited: bool) -> str:
    parts = [count_of(calls, "call")]
    if compactions:
        parts.append(f"▲ compaction ({len(compactions)})")
    if limited:
        parts.append("╌ limit")
    return "   ".join(parts)


class Segment(msgspec.Struct, frozen=True):
    """A part of the bar; `colour` is a name or number of `terminal.colours`."""

    letter: str
    colour: str
    tokens: int


def category_segment(category: str, tokens: int) -> Segment:
    """Return the segment of a category; one of a newer version looks like what is unexplained."""
    return Segment(*LOOKS.get(category, LOOKS[UNEXPLAINED]), tokens)


def draw_stacked_bar(segments: Sequence[Segment], whole: int, width: int, colour: bool) -> str:
    """Draw segments as parts of a whole; each cell shows where its segment ends."""
    cells = count_cells(segments, whole, width)
    drawn = [paint_segment(*pair, colour) for pair in zip(segments, cells, strict=True)]
    return "".join(drawn) + FREE * (width - sum(cells))


def count_cells(segments: Sequence[Segment], whole: int, width: int) -> list[int]:
    """Return how many cells each segment has of a bar that is as long as the whole."""
    ends = accumulate(segment.tokens for segment in segments)
    cells = [min(width, round(width * end / whole)) if whole else 0 for end in ends]
    return [end - start for start, end in pairwise((0, *cells))]


def paint_segment(segment: Segment, cells: int, colour: bool) -> str:
    """Draw so many cells of a segment."""
    code = colours.code(segment.colour)
    if not colour or not code:
        return segment.letter * cells
    return f"\x1b[{code}m{BLOCK * cells}\x1b[0m" if cells else ""
