"""Levels: the figures at which a signal fires, each at most once per cycle.

A level is a plain number: percent of the window, percent of the limit, or tokens. One in calls left
is negative, so that it rises to the limit as the others do: -10 is reached with 10 calls left.
"""

import math
import sys
from collections.abc import Iterable, Sequence, Set
from itertools import pairwise
from typing import Literal, Protocol, TypeAlias

from brimline.errors import InvalidPolicy

# A rotation is done below this percent of the limit: beyond it the next call may compact.
LAST_ROTATION_PERCENT = 92.0

DEFAULT_LEVELS: tuple[float, ...] = (50.0, 65.0)  # warning and critical

# What levels measure: percent of the window or of the limit, or tokens held. `earlier`: a level is
# reached at its percentage of the window or at LIMIT_FACTOR times that of the limit.
LevelMeasure: TypeAlias = Literal["earlier", "window", "limit", "tokens"]

# 60 and 78 % of the limit for the default levels: the same as 50 and 65 % of a window of 200K with
# a limit of 167K, and in time for Gemini CLI, which compacts at half of its window.
LIMIT_FACTOR = 1.2

# The scale of every colour: below the first level, from the first, from the last, from the limit.
Fullness: TypeAlias = Literal["low", "medium", "high", "limit"]


class LevelFigures(Protocol):
    """The figures that levels are compared with, of a reading or of a stored thread."""

    @property
    def percent_raw(self) -> float | None: ...
    @property
    def percent_of_limit(self) -> float | None: ...
    @property
    def held(self) -> int | None: ...


def measure_of(levels: tuple[float, ...], of: LevelMeasure | None) -> LevelMeasure:
    """Return what levels measure if `of` is not set: a user's own are percent of the window."""
    return of or ("earlier" if levels == DEFAULT_LEVELS else "window")


def figure_of(reading: LevelFigures, of: LevelMeasure) -> float | None:
    """Return the figure that levels are compared with; None if it is unknown.

    Without a window, its percentage is that of the limit by LIMIT_FACTOR.
    """
    if of == "limit":
        return reading.percent_of_limit
    if of == "tokens":
        return None if reading.held is None else float(reading.held)
    window = reading.percent_raw
    if of == "window" and window is not None:
        return window
    limit = None if reading.percent_of_limit is None else reading.percent_of_limit / LIMIT_FACTOR
    return max((each for each in (window, limit) if each is not None), default=None)


def is_near_limit(fullness: Fullness | None) -> bool:
    """Return whether a thread has reached its last level or its limit."""
    return fullness in ("high", "limit")


def fullness_of(
    reading: LevelFigures, levels: Sequence[float], of: LevelMeasure
) -> Fullness | None:
    """Return how full a context is by its levels and its limit; None if that is unknown.

    Without a window and a limit it is unknown. The end of the window counts as the limit.
    """
    if reading.percent_raw is None and reading.percent_of_limit is None:
        return None
    if max(reading.percent_raw or 0.0, reading.percent_of_limit or 0.0) >= 100:
        return "limit"
    figure = figure_of(reading, of)
    return None if figure is None else compare_levels(figure, levels)


def compare_levels(figure: float, levels: Sequence[float]) -> Literal["low", "medium", "high"]:
    """Return whether a figure is below the first level, or has reached the first or the last."""
    if not levels or figure < levels[0]:
        return "low"
    return "high" if figure >= levels[-1] else "medium"


def check_levels(levels: Iterable[float], name: str = "levels") -> tuple[float, ...]:
    """Return the levels; raises InvalidPolicy unless they are finite, above 0 and increasing.

    There may be none. `name` is the setting that an error names. A level above 100 is allowed: a
    reading is unbounded, so it can be reached.
    """
    given = tuple(levels)
    if not all(type(level) in (int, float) and 0 < level <= sys.float_info.max for level in given):
        raise InvalidPolicy(name, given, "finite numbers above 0")
    checked = tuple(float(level) for level in given)
    if any(lower >= higher for lower, higher in pairwise(checked)):
        raise InvalidPolicy(name, given, "strictly increasing")
    return checked


def check_calls_levels(calls: Iterable[float]) -> tuple[float, ...]:
    """Return levels of calls left as levels; raises InvalidPolicy unless they are fit for that."""
    return tuple(-level for level in reversed(check_levels(sorted(calls), "levels_calls")))


def calls_figure(calls_left: int | None) -> float | None:
    """Return the figure that levels of calls left are compared with; None if it is unknown."""
    return None if calls_left is None else -float(calls_left)


def describe_level(level: float) -> str:
    if level >= 0:
        return f"level {level:g}"
    return f"the level of {-level:g} {'call' if level == -1 else 'calls'} left"


def rearm_threshold(passed: float, figure: float | None) -> float:
    """Return the highest re-armed level that must not fire again, after a figure was seen.

    A re-armed level fires only after the figure drops below it and rises again.
    """
    return passed if figure is None else min(passed, figure)


def highest_reached(
    levels: Iterable[float], figure: float | None, fired: Set[float]
) -> float | None:
    """Return the highest level that is reached, if it is above all that fired in this cycle.

    A jump over two levels returns only the higher, and the lower one does not fire any more; a
    reading that fell re-arms nothing. Unknown (None, NaN) reaches nothing. Levels of calls left
    that fired do not count for others, nor these for those.
    """
    if figure is None:
        return None
    highest = {level < 0: level for level in sorted(fired)}
    return max(
        (level for level in levels if highest.get(level < 0, -math.inf) < level <= figure),
        default=None,
    )


def percent_of_window(
    levels: Iterable[float], measure: LevelMeasure, window: int | None, limit: int | None
) -> list[float]:
    """Convert levels of any measure to percent of the window; none if the sizes are unknown."""
    earlier = window if not window or not limit else min(window, LIMIT_FACTOR * limit)
    wholes = {"earlier": earlier, "window": window, "limit": limit, "tokens": 100}
    whole = wholes[measure]
    if not window or not whole:
        return []
    return [round(level * whole / window, 1) for level in levels]
