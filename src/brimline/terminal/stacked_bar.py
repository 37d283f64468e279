"""A bar of several parts, each in its own colour, or as its own letter without colours."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgspec

from brimline.terminal import colours

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
