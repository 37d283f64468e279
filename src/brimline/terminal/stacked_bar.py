"""A bar of several parts, each in its own colour, or as its own letter without colours."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgspec

from brimline.terminal import colours

FREE = "·"
BLOCK = "█"


class Segment(msgspec.Struct, frozen=True):
    """A part of the bar; `colour` is a name or number of `terminal.colours`."""

    letter: str
    colour: str
    tokens: int


def draw_stacked_bar(segments: Sequence[Segment], whole: int, width: int, colour: bool) -> str:
    """Draw segments as parts of a whole; each cell shows where its segment ends."""
    ends = accumulate(segment.tokens for segment in segments)
    cells = [min(width, round(width * end / whole)) if whole else 0 for end in ends]
    drawn = [
        paint_segment(segment, end - start, colour)
        for segment, (start, end) in zip(segments, pairwise((0, *cells)), strict=True)
    ]
    return "".join(drawn) + FREE * (width - (cells[-1] if cells else 0))


def paint_segment(segment: Segment, cells: int, colour: bool) -> str:
    """Draw so many cells of a segment."""
    code = colours.code(segment.colour)
    if not colour or not code:
        return segment.letter * cells
    return f"\x1b[{code}m{BLOCK * cells}\x1b[0m" if cells else ""
