"""Levels: each at most once per cycle, the higher of two, never again after a fall."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.policy.levels import (
    DEFAULT_LEVELS,
    Fullness,
    LevelMeasure,
    check_calls_levels,
    check_levels,
    describe_level,
    figure_of,
    fullness_of,
    highest_reached,
    measure_of,
    percent_of_window,
    rearm_threshold,
)
from brimline.errors import InvalidPolicy
from brimline.store.rows import ThreadRow

NOTHING_FIRED = frozenset[float]()


def fired_by(levels: tuple[float, ...], percents: list[float | None]) -> list[float]:
    """The levels that these readings of one cycle fire, in order."""
    fired: list[float] = []
    for percent in percents:
        level = highest_reached(levels, percent, frozenset(fired))
        if level is not None:
            fired.append(level)
    return fired


def test_default_levels_are_50_and_65() -> None:
    assert check_levels(DEFAULT_LEVELS) == DEFAULT_LEVELS == (50.0, 65.0)


def test_integers_and_values_above_100_are_levels() -> None:
    checked = check_levels([50, 65.5, 110])
    assert checked == (50.0, 65.5, 110.0)
    assert all(type(level) is float for level in checked)


def test_empty_list_of_levels_never_fires() -> None:
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
def test_invalid_or_unsorted_levels_are_refused_by_name(levels: Any) -> None:
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
def test_highest_reached_level_above_the_fired_ones_is_reached(
    percent: float | None, fired: tuple[float, ...], level: float | None
) -> None:
    assert highest_reached(DEFAULT_LEVELS, percent, frozenset(fired)) == level


def test_jump_over_two_levels_fires_only_the_higher() -> None:
    assert fired_by(DEFAULT_LEVELS, [10.0, 70.0, 55.0, 70.0]) == [65.0]


def test_fall_below_a_level_does_not_rearm_it() -> None:
    assert fired_by(DEFAULT_LEVELS, [52.0, 30.0, 52.0, None, 66.0, 10.0, 90.0]) == [50.0, 65.0]


def test_level_below_1_percent_fires() -> None:
    assert highest_reached(check_levels([0.5]), 0.6, NOTHING_FIRED) == 0.5


def test_levels_in_tokens_are_compared_with_tokens() -> None:
    assert highest_reached(check_levels([100_000, 150_000]), 160_000, NOTHING_FIRED) == 150_000.0


PERCENTS = st.none() | st.floats(0, 200) | st.just(math.nan)
LISTS = st.lists(st.floats(0.1, 150), unique=True).map(lambda levels: check_levels(sorted(levels)))


@given(LISTS, st.lists(PERCENTS))
def test_no_level_fires_twice_in_a_cycle(
    levels: tuple[float, ...], percents: list[float | None]
) -> None:
    fired = fired_by(levels, percents)
    assert fired == sorted(set(fired))
    assert set(fired) <= set(levels)


@given(LISTS, st.lists(PERCENTS), st.integers(1, 3))
def test_repeated_readings_fire_nothing_more(
    levels: tuple[float, ...], percents: list[float | None], copies: int
) -> None:
    often = [percent for percent in percents for _ in range(copies)]
    assert fired_by(levels, often) == fired_by(levels, percents)


@given(LISTS, st.lists(st.floats(0, 200)))
def test_last_fired_level_is_that_of_the_peak(
    levels: tuple[float, ...], percents: list[float]
) -> None:
    fired = fired_by(levels, [*percents])
    peak = max(percents, default=None)
    assert (fired[-1] if fired else None) == highest_reached(levels, peak, NOTHING_FIRED)


@given(LISTS, st.floats(0, 200), st.floats(0, 200), st.frozensets(st.floats(0.1, 150)))
def test_fuller_window_never_reaches_a_lower_level(
    levels: tuple[float, ...], first: float, second: float, fired: frozenset[float]
) -> None:
    lower = highest_reached(levels, min(first, second), fired)
    higher = highest_reached(levels, max(first, second), fired)
    assert lower is None or (higher is not None and higher >= lower)


def test_rearmed_level_fires_only_after_the_figure_has_left_it() -> None:
    assert rearm_threshold(65.0, 70.0) == 65.0
    assert rearm_threshold(65.0, 60.0) == 60.0
    assert rearm_threshold(65.0, None) == 65.0


def test_levels_of_any_measure_have_a_place_in_a_known_window() -> None:
    assert percent_of_window((50.0, 65.0), "window", 200_000, None) == [50.0, 65.0]
    assert percent_of_window((50.0,), "limit", 200_000, 160_000) == [40.0]
    assert percent_of_window((100_000.0,), "tokens", 200_000, None) == [50.0]
    assert percent_of_window((66_666.0,), "tokens", 200_000, None) == [33.3]
    assert percent_of_window((50.0,), "limit", 200_000, None) == []
    assert percent_of_window((100_000.0,), "tokens", None, None) == []
    assert percent_of_window((50.0, 65.0), "earlier", 1_000_000, 500_000) == [30.0, 39.0]
    assert percent_of_window((50.0, 65.0), "earlier", 200_000, 167_000) == [50.0, 65.0]
    assert percent_of_window((50.0, 65.0), "earlier", 200_000, None) == [50.0, 65.0]
    assert percent_of_window((50.0, 65.0), "earlier", None, 167_000) == []
    assert percent_of_window((50.0,), "window", None, 160_000) == []


@pytest.mark.parametrize(
    ("window", "limit", "figure"),
    [
        (50.0, 59.9, 50.0),
        (30.0, 60.0, 50.0),
        (39.0, 78.0, 65.0),
        (50.0, None, 50.0),
        (None, 60.0, 50.0),
        (None, None, None),
    ],
)
def test_default_levels_are_reached_by_the_window_or_the_limit(
    window: float | None, limit: float | None, figure: float | None
) -> None:
    """50 and 65 % of the window, or 60 and 78 % of the limit: the earlier."""
    thread = ThreadRow(
        "s", "main", 0, 0, "test", "measured", percent_raw=window, percent_of_limit=limit
    )
    assert figure_of(thread, "earlier") == figure


@pytest.mark.parametrize(
    ("levels", "of", "measure"),
    [
        (DEFAULT_LEVELS, None, "earlier"),
        (DEFAULT_LEVELS, "window", "window"),
        ((30.0, 42.0), None, "window"),
        ((30.0, 42.0), "earlier", "earlier"),
    ],
)
def test_levels_of_the_user_are_percent_of_the_window(
    levels: tuple[float, ...], of: LevelMeasure | None, measure: LevelMeasure
) -> None:
    assert measure_of(levels, of) == measure


@pytest.mark.parametrize(
    ("window", "limit", "levels", "of", "fullness"),
    [
        (49.9, None, (50.0, 65.0), "window", "low"),
        (50.0, None, (50.0, 65.0), "window", "medium"),
        (65.0, None, (50.0, 65.0), "window", "high"),
        (64.9, 99.9, (50.0, 65.0), "window", "medium"),
        (30.0, 100.0, (50.0, 65.0), "window", "limit"),
        (100.0, None, (50.0, 65.0), "window", "limit"),
        (100.0, 50.0, (120.0,), "window", "limit"),
        (30.0, 60.0, (50.0, 65.0), "earlier", "medium"),
        (39.0, 78.0, (50.0, 65.0), "earlier", "high"),
        (40.0, 50.0, (40.0,), "window", "high"),
        (40.0, 50.0, (20.0, 30.0, 50.0), "window", "medium"),
        (99.0, 99.0, (), "window", "low"),
        (40.0, 50.0, (45.0, 60.0), "limit", "medium"),
        (40.0, None, (45.0, 60.0), "limit", None),
        (None, 100.0, (50.0, 65.0), "limit", "limit"),
        (None, 92.4, (50.0, 65.0), "window", "high"),
        (None, 59.9, (50.0, 65.0), "window", "low"),
        (None, None, (70_000.0, 90_000.0), "tokens", None),
        (40.0, 50.0, (70_000.0, 90_000.0), "tokens", "medium"),
    ],
)
def test_fullness_compares_with_the_first_and_last_level_and_the_limit(
    window: float | None,
    limit: float | None,
    levels: tuple[float, ...],
    of: LevelMeasure,
    fullness: Fullness | None,
) -> None:
    thread = ThreadRow(
        "s", "main", 0, 0, "test", "measured", held=80_000, percent_raw=window,
        percent_of_limit=limit,
    )  # fmt: skip
    assert fullness_of(thread, levels, of) == fullness


def test_error_names_the_wrong_levels() -> None:
    with pytest.raises(InvalidPolicy, match=r"levels_by\.claude"):
        check_levels([65, 50], "levels_by.claude")


@pytest.mark.parametrize(
    ("given", "levels"), [((10,), (-10.0,)), ((30, 10), (-30.0, -10.0)), ((), ())]
)
def test_levels_of_calls_left_rise_to_the_limit(
    given: tuple[float, ...], levels: tuple[float, ...]
) -> None:
    assert check_calls_levels(given) == check_calls_levels(given[::-1]) == levels


@pytest.mark.parametrize("given", [(0,), (-1,), (10, 10)])
def test_invalid_levels_of_calls_left_name_their_setting(given: tuple[float, ...]) -> None:
    with pytest.raises(InvalidPolicy, match="levels_calls"):
        check_calls_levels(given)


def test_level_is_described_by_what_it_measures() -> None:
    assert describe_level(83.5) == "level 83.5"
    assert describe_level(-10.0) == "the level of 10 calls left"
    assert describe_level(-1.0) == "the level of 1 call left"
