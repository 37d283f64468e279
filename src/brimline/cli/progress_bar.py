"""The bar below a run's output: one line at the bottom of the terminal that moves."""

import contextlib
import os
import select
import stat
import time
from collections.abc import Sequence

from brimline.terminal.text import GAP, cell_width, colourize, count_of, draw_bar, shade_of
from brimline.tracker import Reading
from brimline.usage import format_tokens

LEAST, MOST = 8, 30  # how wide the bar itself may be

# Seconds between two drawings of the bar, and if nothing changed.
OFTEN, SELDOM = 0.1, 0.5

# Everything behind and below the cursor: the bar, and what a child's own line left of it.
ERASE = "\x1b[J"

# Make room below the cursor's line, write there, and come back to where the cursor was.
BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r{}\x1b8"


def put(file: int, data: bytes) -> None:
    """Write all of it, also where somebody made the file non-blocking."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(file, view) :]
        except BlockingIOError:
            select.select([], [file], [])


def tell(text: str) -> None:
    """Write to standard error; a terminal that is gone is nobody to tell."""
    with contextlib.suppress(OSError):
        put(2, text.encode("utf-8", "replace"))


def status(reading: Reading, calls: int, seconds: float, name: str) -> list[str]:
    """What stands beside the bar, the most important first."""
    share = "" if reading.percent is None else f"{reading.percent:.1f}%"
    if reading.state == "compacting":
        share = "compacting"
    called = count_of(calls, "call") if calls else ""
    return [part for part in (share, tokens(reading), called, clock(seconds), name) if part]


def tokens(reading: Reading) -> str:
    """What was sent of what can be; no window is claimed before a call told its model."""
    if reading.sent is None:
        return "unknown"
    window = f"/{format_tokens(reading.window.tokens)}" if reading.window else ""
    return format_tokens(reading.sent) + window


def clock(seconds: float) -> str:
    """A time span as 12s, 3:05 or 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    if not minutes:
        return f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def line(reading: Reading, beside: Sequence[str], width: int, colour: bool) -> str:
    """The whole line, at most so wide: first the last of what stands beside is left out."""
    size = max(LEAST, min(MOST, width // 4))
    drawn = draw_bar(reading.percent, size)
    shown = _fitting(["Context", drawn], beside, width) or _fitting(["Context"], beside, width)
    painting = colourize(drawn, shade_of(reading.percent), colour)
    return GAP.join(painting if part is drawn else part for part in shown)


def _fitting(first: list[str], rest: Sequence[str], width: int) -> list[str]:
    """As much of the rest as fits behind the first; nothing where not even one does."""
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
        """Draw it, if it changed, or if somebody may have written over it by now."""
        now = time.monotonic()
        old = text != self._text or not self._shown or now - self._drawn >= SELDOM
        self._text = text
        if text and old and _in_foreground():
            tell(ERASE + BELOW.format(text))
            self._shown, self._drawn = True, now

    def again(self) -> None:
        """Draw it once more as it was, if that was not just now."""
        if not self._shown and time.monotonic() - self._drawn >= OFTEN:
            self.draw(self._text)

    def erase(self) -> None:
        """Take it away."""
        if self._shown:
            self._shown = False
            tell(ERASE)

    def forget(self) -> None:
        """Take it away for good."""
        self.erase()
        self._text = ""

    @staticmethod
    def width() -> int:
        """How wide a line may be; the last column stays free, where a terminal would wrap."""
        try:
            return os.get_terminal_size(2).columns - 1
        except OSError:
            return 79


def same_terminal() -> bool:
    """Whether standard output and standard error are one terminal."""
    try:
        ours, theirs = os.fstat(1), os.fstat(2)
    except OSError:
        return False
    return os.isatty(1) and os.isatty(2) and ours.st_rdev == theirs.st_rdev


def piped() -> bool:
    """Whether standard output goes to another program, which may write to our terminal."""
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
