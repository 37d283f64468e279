"""Levels: the figures at which something is said, each at most once per cycle.

A level is a plain number, and a list of levels has one measure. Nothing here depends on which it
is: per cent of the window is the default, per cent of the limit or tokens are compared alike.
"""

import sys
from collections.abc import Iterable, Set
from itertools import pairwise

from brimline.errors import InvalidPolicy

DEFAULT_LEVELS: tuple[float, ...] = (50.0, 65.0)  # warning and critical


def check_levels(levels: Iterable[float], name: str = "levels") -> tuple[float, ...]:
    """These levels, if they are finite, above 0 and strictly increasing; none is allowed.

    `name` is what an error calls them. A level above 100 is allowed: a reading is unbounded, so it
    can be reached.
    """
    told = tuple(levels)
    if not all(_sound(level) for level in told):
        raise InvalidPolicy(name, told, "finite numbers above 0")
    made = tuple(float(level) for level in told)
    if any(lower >= higher for lower, higher in pairwise(made)):
        raise InvalidPolicy(name, told, "strictly increasing")
    return made


def _sound(level: float) -> bool:
    return type(level) in (int, float) and 0 < level <= sys.float_info.max


def rearm_threshold(passed: float, figure: float | None) -> float:
    """Up to where levels were done with before they were armed anew, once a figure is seen.

    They are told again when it comes up to them again, not because it is still above them: where
    it fell, those that it has not left are done with still.
    """
    return passed if figure is None else min(passed, figure)


def highest_reached(
    levels: Iterable[float], percent_raw: float | None, fired: Set[float]
) -> float | None:
    """The highest level that is reached, if it is above all that fired in this cycle; else None.

    A jump over two levels gives the higher alone, and the lower one is done with; a reading that
    fell re-arms nothing. Unknown (None, NaN) reaches nothing.
    """
    if percent_raw is None:
        return None
    done = max(fired, default=0.0)
    return max((level for level in levels if done < level <= percent_raw), default=None)


def percent_of_window(
    levels: Iterable[float], measure: str, window: int | None, limit: int | None
) -> list[float]:
    """Where levels lie in per cent of the window, whatever they are of; none where not known."""
    whole = {"window": window, "limit": limit, "tokens": 100}[measure]
    if not window or not whole:
        return []
    return [round(level * whole / window, 1) for level in levels]
