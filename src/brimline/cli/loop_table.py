"""The last and the peak of a loop's contexts as a table."""

from brimline.run.loop_peaks import HatStats, LoopStats
from brimline.terminal.text import Cell, Column, format_table, shade_of, strip_control
from brimline.usage import format_tokens, whole_percent

COLUMNS = (
    Column("hat", min_width=6),
    Column("iterations", right=True, drop_order=1),
    Column("last", right=True),
    Column("peak", right=True),
)
OVERALL, NO_HAT = "all", "-"


def loop_table(loop: LoopStats, width: int, colour: bool) -> list[str]:
    """Return a line per hat if there are several, and one for all."""
    named = [hat for hat in loop.hats if hat.hat is not None or len(loop.hats) > 1]
    cells = [_cells(strip_control(hat.hat or NO_HAT), hat) for hat in named]
    return format_table(COLUMNS, [*cells, _cells(OVERALL, loop.overall)], width, colour)


def _cells(name: str, hat: HatStats) -> list[Cell]:
    last = _context(hat.last_context_tokens, hat.last_context_window)
    peak = _context(hat.peak_context_tokens, hat.peak_context_window)
    return [
        Cell(name),
        Cell(str(hat.iterations)),
        Cell(last, shade_of(hat.last_pct)),
        Cell(peak, shade_of(hat.peak_pct)),
    ]


def _context(tokens: int | None, window: int | None) -> str:
    if tokens is None:
        return "unknown"
    if window is None:
        return format_tokens(tokens)
    return f"{whole_percent(tokens, window)}% ({format_tokens(tokens)}/{format_tokens(window)})"
