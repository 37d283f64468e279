"""The last and the peak of a loop's contexts: of each hat, and of all together."""

from collections.abc import Iterable

import msgspec

from brimline.run.events_file import Figures, Row
from brimline.usage import percent


class HatStats(msgspec.Struct, frozen=True):
    """What a hat's contexts came to: the last iteration's, and the fullest one's.

    An iteration of which nothing is known counts, and changes neither.
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
    """A loop: each hat in the order in which it first came, and all together."""

    hats: list[HatStats]
    overall: HatStats


def stats(rows: Iterable[Row]) -> LoopStats:
    """What the rows of a loop add up to."""
    every = list(rows)
    names = dict.fromkeys(row.hat for row in every)
    hats = [_of(name, [row for row in every if row.hat == name]) for name in names]
    return LoopStats(hats, _of(None, every))


def _of(hat: str | None, rows: list[Row]) -> HatStats:
    known = [row.figures for row in rows if row.figures.context_tokens is not None]
    last = known[-1] if known else Figures()
    fullest = max(known, key=_peak, default=Figures())
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


def _peak(figures: Figures) -> int:
    """The most that an iteration sent; Ralph's own rows tell one figure alone."""
    return max(figures.peak_context_tokens or 0, figures.context_tokens or 0)
