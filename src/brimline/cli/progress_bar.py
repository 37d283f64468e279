"""The bar below a run's output: one line at the bottom of the terminal that moves."""

import contextlib
import os
import select
import stat
import time
from collections.abc import Sequence

from brimline.context.tracker import Reading
from brimline.context.usage import format_occupancy, format_tokens
from brimline.terminal.text import (
    GAP,
    Shade,
    cell_width,
    colourize,
    count_of,
    draw_bar,
    encode_output,
)

MIN_BAR_COLUMNS, MAX_BAR_COLUMNS = 8, 30  # how wide the bar itself may be

# Seconds between two drawings of the bar, and if nothing changed.
REDRAW_S, REFRESH_S = 0.1, 0.5

# Everything behind and below the cursor: the bar, and what a child's own line left of it.
ERASE = "\x1b[J"

# Make room below the cursor's line, write there, and come back to where the cursor was.
BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r{}\x1b8"


def write_all(file: int, data: bytes) -> None:
    """Write all data, even if the file is non-blocking."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(file, view) :]
        except BlockingIOError:
            select.select([], [file], [])


def write_error(text: str) -> None:
    """Write to standard error; a closed terminal is ignored."""
    with contextlib.suppress(OSError):
        write_all(2, encode_output(text))


def status_parts(reading: Reading, calls: int, seconds: float, name: str) -> list[str]:
    """Return the texts after the bar, the most important first."""
    share = "" if reading.percent_raw is None else format_occupancy(reading.percent_raw)
    if reading.state == "compacting":
        share = "compacting"
    called = count_of(calls, "call") if calls else ""
    return [part for part in (share, tokens(reading), called, clock(seconds), name) if part]


def tokens(reading: Reading) -> str:
    if reading.sent is None:
        return "unknown"
    window = f"/{format_tokens(reading.window.tokens)}" if reading.window else ""
    return format_tokens(reading.sent) + window


def clock(seconds: float) -> str:
    """Format a time span as 12s, 3:05 or 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    if not minutes:
        return f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def bar_line(
    reading: Reading, details: Sequence[str], width: int, shade: Shade, colour: bool
) -> str:
    """Return a line of at most `width` columns; the last texts are dropped first."""
    size = max(MIN_BAR_COLUMNS, min(MAX_BAR_COLUMNS, width // 4))
    drawn = draw_bar(reading.percent, size)
    shown = _fitting(["Context", drawn], details, width) or _fitting(["Context"], details, width)
    painting = colourize(drawn, shade, colour)
    return GAP.join(painting if part is drawn else part for part in shown)


def _fitting(first: list[str], rest: Sequence[str], width: int) -> list[str]:
    """Return the first parts and as many others as fit; empty if none of the others fits."""
    for count in range(len(rest), 0, -1):
        if cell_width(GAP.join([*first, *rest[:count]])) <= width:
            return [*first, *rest[:count]]
    return []


class Bar:
    """One line on standard error, which is a terminal, below the one that the cursor is in.

    So it never goes over a line that is not whole yet, and what the child itself writes to the
    terminal finds a free line.
    """

    def __init__(self) -> None:
        self._text = ""
        self._shown = False
        self._drawn = 0.0

    def draw(self, text: str) -> None:
        """Draw the bar if it changed, or if the child may have overwritten it."""
        now = time.monotonic()
        old = text != self._text or not self._shown or now - self._drawn >= REFRESH_S
        self._text = text
        if text and old and _in_foreground():
            write_error(ERASE + BELOW.format(text))
            self._shown, self._drawn = True, now

    def redraw(self) -> None:
        """Draw the same bar again, at most every REDRAW_S."""
        if not self._shown and time.monotonic() - self._drawn >= REDRAW_S:
            self.draw(self._text)

    def erase(self) -> None:
        if self._shown:
            self._shown = False
            write_error(ERASE)

    def clear(self) -> None:
        self.erase()
        self._text = ""

    @staticmethod
    def width() -> int:
        """Return the terminal's width without its last column, where it would wrap."""
        try:
            return os.get_terminal_size(2).columns - 1
        except OSError:
            return 79


def is_same_terminal() -> bool:
    try:
        ours, theirs = os.fstat(1), os.fstat(2)
    except OSError:
        return False
    return os.isatty(1) and os.isatty(2) and ours.st_rdev == theirs.st_rdev


def is_output_piped() -> bool:
    """Return whether another program reads our output: it may write to our terminal."""
    try:
        mode = os.fstat(1).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(2) == os.getpgrp()
    except OSError:
        return False
