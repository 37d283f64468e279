"""Levels: each at most once per cycle, the higher of two, never again after a fall."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.errors import InvalidPolicy
from brimline.policy import DEFAULT_LEVELS, check_levels, highest_reached
from brimline.policy.levels import percent_of_window, rearm_threshold

NOTHING_FIRED = frozenset[float]()


def fired_by(levels: tuple[float, ...], percents: list[float | None]) -> list[float]:
    """The levels that these readings of one cycle fire, in order."""
    fired: list[float] = []
    for percent in percents:
        level = highest_reached(levels, percent, frozenset(fired))
        if level is not None:
            fired.append(level)
    return fired


def test_the_default_levels() -> None:
    """Warning at 50 and critical at 65, and they are levels that can be."""
    assert check_levels(DEFAULT_LEVELS) == DEFAULT_LEVELS == (50.0, 65.0)


def test_whole_numbers_are_levels() -> None:
    """A level may be given as an integer; above 100 it is one too, for a reading is unbounded."""
    made = check_levels([50, 65.5, 110])
    assert made == (50.0, 65.5, 110.0)
    assert all(type(level) is float for level in made)


def test_no_levels() -> None:
    """An empty list says nothing, ever."""
    assert check_levels([]) == ()
    assert highest_reached((), 99.0, NOTHING_FIRED) is None


BAD: list[Any] = [
    [0],
    [-1.0],
    [50, 50],
    [65, 50],
    [50, 65, 65],
    [2**53, 2**53 + 1],
    [math.nan],
    [50, math.nan],
    [math.inf],
    [10**400],
    [True],
    ["50"],
    [None],
    "50",
]


@pytest.mark.parametrize("levels", BAD, ids=lambda levels: repr(levels)[:20])
def test_levels_that_cannot_be(levels: Any) -> None:
    """Levels that are no finite numbers above 0, or do not increase, are refused by name."""
    with pytest.raises(InvalidPolicy) as caught:
        check_levels(levels)
    assert caught.value.field == "levels"


@pytest.mark.parametrize(
    ("percent", "fired", "level"),
    [
        (49.9, (), None),
        (50.0, (), 50.0),
        (64.9, (), 50.0),
        (64.9, (50.0,), None),
        (65.0, (50.0,), 65.0),
        (80.0, (), 65.0),
        (250.0, (65.0,), None),
        (55.0, (65.0,), None),
        (55.0, (60.0,), None),
        (None, (), None),
        (math.nan, (), None),
        (0.0, (), None),
        (-5.0, (), None),
        (math.inf, (), 65.0),
    ],
)
def test_reached(percent: float | None, fired: tuple[float, ...], level: float | None) -> None:
    """The highest that is reached and above all that fired; unknown reaches nothing."""
    assert highest_reached(DEFAULT_LEVELS, percent, frozenset(fired)) == level


def test_a_jump_is_one_level() -> None:
    """A jump over both levels fires the higher; the lower does not fire when the reading falls."""
    assert fired_by(DEFAULT_LEVELS, [10.0, 70.0, 55.0, 70.0]) == [65.0]


def test_a_fall_re_arms_nothing() -> None:
    """A reading that fell below a level and comes back does not fire it again."""
    assert fired_by(DEFAULT_LEVELS, [52.0, 30.0, 52.0, None, 66.0, 10.0, 90.0]) == [50.0, 65.0]


def test_levels_of_another_measure() -> None:
    """Levels in tokens are compared with tokens in the same way."""
    assert highest_reached(check_levels([100_000, 150_000]), 160_000, NOTHING_FIRED) == 150_000.0


PERCENTS = st.none() | st.floats(0, 200) | st.just(math.nan)
LISTS = st.lists(st.floats(0.1, 150), unique=True).map(lambda levels: check_levels(sorted(levels)))


@given(LISTS, st.lists(PERCENTS))
def test_at_most_once_per_cycle(levels: tuple[float, ...], percents: list[float | None]) -> None:
    """In one cycle levels only ever go up: none fires twice, whatever comes."""
    fired = fired_by(levels, percents)
    assert fired == sorted(set(fired))
    assert set(fired) <= set(levels)


@given(LISTS, st.lists(PERCENTS), st.integers(1, 3))
def test_copies_change_nothing(
    levels: tuple[float, ...], percents: list[float | None], copies: int
) -> None:
    """Readings that come several times fire what they fire once."""
    often = [percent for percent in percents for _ in range(copies)]
    assert fired_by(levels, often) == fired_by(levels, percents)


@given(LISTS, st.lists(st.floats(0, 200)))
def test_the_last_is_what_the_peak_reached(
    levels: tuple[float, ...], percents: list[float]
) -> None:
    """Whatever the order of the readings, the last level that fired is the one of their peak."""
    fired = fired_by(levels, [*percents])
    peak = max(percents, default=None)
    assert (fired[-1] if fired else None) == highest_reached(levels, peak, NOTHING_FIRED)


@given(LISTS, st.floats(0, 200), st.floats(0, 200), st.frozensets(st.floats(0.1, 150)))
def test_more_reaches_no_less(
    levels: tuple[float, ...], one: float, other: float, fired: frozenset[float]
) -> None:
    """A fuller window never reaches a lower level than an emptier one."""
    lower = highest_reached(levels, min(one, other), fired)
    higher = highest_reached(levels, max(one, other), fired)
    assert lower is None or (higher is not None and higher >= lower)


def test_armed_anew() -> None:
    """A level that was told before it was armed anew waits until the figure has left it."""
    assert rearm_threshold(65.0, 70.0) == 65.0
    assert rearm_threshold(65.0, 60.0) == 60.0
    assert rearm_threshold(65.0, None) == 65.0


def test_where_levels_lie() -> None:
    """Whatever levels are of, they lie somewhere in the window, where that is known."""
    assert percent_of_window((50.0, 65.0), "window", 200_000, None) == [50.0, 65.0]
    assert percent_of_window((50.0,), "limit", 200_000, 160_000) == [40.0]
    assert percent_of_window((100_000.0,), "tokens", 200_000, None) == [50.0]
    assert percent_of_window((50.0,), "limit", 200_000, None) == []
    assert percent_of_window((50.0,), "window", None, 160_000) == []


def test_whose_levels_cannot_be() -> None:
    """An error names the levels that are wrong."""
    with pytest.raises(InvalidPolicy, match=r"levels_by\.claude"):
        check_levels([65, 50], "levels_by.claude")
