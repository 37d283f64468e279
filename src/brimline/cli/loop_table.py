"""The last and the peak of a loop's contexts as a table."""

from typing import NamedTuple

from brimline.context.usage import format_tokens, percent_raw, whole_percent
from brimline.monitor.user_rules import Rules
from brimline.run.loop_peaks import HatStats, LoopStats
from brimline.terminal.text import Cell, Column, format_table, strip_control

COLUMNS = (
    Column("hat", min_width=6),
    Column("iterations", right=True, drop_order=1),
    Column("last", right=True),
    Column("peak", right=True),
)
OVERALL, NO_HAT = "all", "-"


class ContextFigures(NamedTuple):
    """What the rows of a loop have of a context; they do not have its limit."""

    held: int | None
    percent_raw: float | None
    percent_of_limit: float | None = None


def loop_table(loop: LoopStats, rules: Rules, width: int, colour: bool) -> list[str]:
    """Return a line per hat if there are several, and one for all."""
    named = [hat for hat in loop.hats if hat.hat is not None or len(loop.hats) > 1]
    cells = [_cells(strip_control(hat.hat or NO_HAT), hat, rules) for hat in named]
    overall = _cells(OVERALL, loop.overall, rules)
    return format_table(COLUMNS, [*cells, overall], width, colour)


def _cells(name: str, hat: HatStats, rules: Rules) -> list[Cell]:
    return [
        Cell(name),
        Cell(str(hat.iterations)),
        _cell(hat.last_context_tokens, hat.last_context_window, rules),
        _cell(hat.peak_context_tokens, hat.peak_context_window, rules),
    ]


def _cell(tokens: int | None, window: int | None, rules: Rules) -> Cell:
    figures = ContextFigures(tokens, percent_raw(tokens, window))
    return Cell(_context(tokens, window), rules.fullness_of(figures, "", "", None) or "dim")


def _context(tokens: int | None, window: int | None) -> str:
    if tokens is None:
        return "unknown"
    if window is None:
        return format_tokens(tokens)
    return f"{whole_percent(tokens, window)}% ({format_tokens(tokens)}/{format_tokens(window)})"
