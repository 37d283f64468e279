"""The last and the peak of a loop's contexts as a table."""

from brimline.run.loop_peaks import HatStats, LoopStats
from brimline.terminal.text import Cell, Column, clean, shade, table
from brimline.usage import shorten, whole_percent

COLUMNS = (
    Column("hat", least=6),
    Column("iterations", right=True, drop=1),
    Column("last", right=True),
    Column("peak", right=True),
)
OVERALL, NO_HAT = "all", "-"


def table_of(loop: LoopStats, width: int, colour: bool) -> list[str]:
    """The lines of the table: a hat a line where there are several, and all together."""
    named = [hat for hat in loop.hats if hat.hat is not None or len(loop.hats) > 1]
    cells = [_cells(clean(hat.hat or NO_HAT), hat) for hat in named]
    return table(COLUMNS, [*cells, _cells(OVERALL, loop.overall)], width, colour)


def _cells(name: str, hat: HatStats) -> list[Cell]:
    last = _context(hat.last_context_tokens, hat.last_context_window)
    peak = _context(hat.peak_context_tokens, hat.peak_context_window)
    return [
        Cell(name),
        Cell(str(hat.iterations)),
        Cell(last, shade(hat.last_pct)),
        Cell(peak, shade(hat.peak_pct)),
    ]


def _context(tokens: int | None, window: int | None) -> str:
    if tokens is None:
        return "unknown"
    if window is None:
        return shorten(tokens)
    return f"{whole_percent(tokens, window)}% ({shorten(tokens)}/{shorten(window)})"
