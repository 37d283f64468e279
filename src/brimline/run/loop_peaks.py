"""Last and peak context of a loop, by hat and overall."""

from collections.abc import Iterable

import msgspec

from brimline.context.usage import percent
from brimline.run.events_file import EventRow, IterationFigures


class HatStats(msgspec.Struct, frozen=True):
    """Context of a hat's last iteration, and of its fullest one.

    An iteration without figures counts in `iterations` alone.
    """

    hat: str | None
    iterations: int
    last_context_tokens: int | None
    last_context_window: int | None
    last_pct: float | None
    peak_context_tokens: int | None
    peak_context_window: int | None
    peak_pct: float | None


class LoopStats(msgspec.Struct, frozen=True):
    """Each hat in the order of its first iteration, and all iterations together."""

    hats: list[HatStats]
    overall: HatStats


def loop_stats(rows: Iterable[EventRow]) -> LoopStats:
    all_rows = list(rows)
    names = dict.fromkeys(row.hat for row in all_rows)
    hats = [_hat_stats(name, [row for row in all_rows if row.hat == name]) for name in names]
    return LoopStats(hats, _hat_stats(None, all_rows))


def _hat_stats(hat: str | None, rows: list[EventRow]) -> HatStats:
    known = [row.figures for row in rows if row.figures.context_tokens is not None]
    last = known[-1] if known else IterationFigures()
    fullest = max(known, key=_peak, default=IterationFigures())
    peak = _peak(fullest) or None
    return HatStats(
        hat=hat,
        iterations=len(rows),
        last_context_tokens=last.context_tokens,
        last_context_window=last.context_window,
        last_pct=percent(last.context_tokens, last.context_window),
        peak_context_tokens=peak,
        peak_context_window=fullest.context_window,
        peak_pct=percent(peak, fullest.context_window),
    )


def _peak(figures: IterationFigures) -> int:
    """The most that an iteration sent; Ralph's own rows have `context_tokens` alone."""
    return max(figures.peak_context_tokens or 0, figures.context_tokens or 0)
