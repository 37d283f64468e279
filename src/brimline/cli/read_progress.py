"""The progress of reading transcripts, on standard error."""

import sys
import time

from brimline.cli.progress_bar import clock
from brimline.sessions.index import Progress
from brimline.terminal.text import draw_bar

BAR_COLUMNS = 30
FIRST_DRAWING_S = 1.0  # shorter work needs no bar


def draw_progress() -> Progress | None:
    """Return a progress bar on standard error, which is drawn once the work has taken a second."""
    if not sys.stderr.isatty():
        return None
    start = time.monotonic()
    is_drawn = False

    def draw(done: int, whole: int) -> None:
        nonlocal is_drawn
        elapsed = time.monotonic() - start
        if is_drawn or elapsed >= FIRST_DRAWING_S:
            is_drawn = True
            bar = draw_bar(100 * done / max(1, whole), BAR_COLUMNS, whole_cells=True)
            end = "\r\x1b[K" if done >= whole else ""
            sys.stderr.write(f"\r{bar} {describe_progress(done, whole, elapsed)}\x1b[K{end}")
            sys.stderr.flush()

    return draw


def describe_progress(done: int, whole: int, elapsed: float) -> str:
    """What was read in so many seconds, how fast, and how long the rest will take."""
    amount = f"{done >> 20:,} of {whole >> 20:,} MB"
    if not done or not elapsed:
        return amount
    rate = done / elapsed
    return f"{amount}, {rate / (1 << 20):,.0f} MB/s, {clock((whole - done) / rate)} left"
