"""A screenshot as text and as a comparable file."""

import re
from html import unescape
from pathlib import Path

SNAPSHOTS = Path(__file__).parent / "snapshots"

_TEXT = re.compile(r'<text class="[^"]*" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>')
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def neutral(svg: str) -> str:
    """A screenshot without what differs between runs, and without font addresses."""
    named = re.sub(r"terminal-\d+", "terminal", svg)
    return _FONT.sub("", named).replace("\u00a0", " ")


def rows(svg: str) -> list[str]:
    """The lines of a screenshot from the top."""
    by_height: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in _TEXT.findall(svg):
        by_height.setdefault(float(y), []).append((float(x), unescape(text).replace("\u00a0", " ")))
    return [_row(pieces) for _, pieces in sorted(by_height.items())]


def _row(pieces: list[tuple[float, str]]) -> str:
    """One line; a letter is 12.2 wide."""
    line = ""
    for x, text in sorted(pieces):
        line = line.ljust(round(x / 12.2)) + text
    return line.rstrip()
