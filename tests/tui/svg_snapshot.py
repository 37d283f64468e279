"""A picture of the screen as text, and as a file that can be compared."""

import re
from html import unescape
from pathlib import Path

SNAPSHOTS = Path(__file__).parent / "snapshots"

_TEXT = re.compile(r'<text class="[^"]*" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>')
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def neutral(svg: str) -> str:
    """A picture without what differs from run to run, and without addresses of fonts."""
    named = re.sub(r"terminal-\d+", "terminal", svg)
    return _FONT.sub("", named).replace("\u00a0", " ")


def rows(svg: str) -> list[str]:
    """The lines of a picture, from the top."""
    found: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in _TEXT.findall(svg):
        found.setdefault(float(y), []).append((float(x), unescape(text).replace("\u00a0", " ")))
    return [_row(pieces) for _, pieces in sorted(found.items())]


def _row(pieces: list[tuple[float, str]]) -> str:
    """One line; a letter of the picture is 12.2 wide."""
    line = ""
    for x, text in sorted(pieces):
        line = line.ljust(round(x / 12.2)) + text
    return line.rstrip()
