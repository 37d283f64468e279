"""The signals of a change from one reading to another."""

from typing import Any

import msgspec
import pytest

from brimline.context.policy.levels import DEFAULT_LEVELS, LevelMeasure
from brimline.context.policy.signals import Signal, decide, expect_next_call, is_thrashing
from brimline.context.tracker import Compared, Reading, ReadingState
from brimline.context.usage import percent_raw
from brimline.context.window import Limit, Window


def reading(percent: float | None, cycle: int = 0, state: ReadingState = "measured") -> Reading:
    """A reading at a percentage."""
    figures: dict[str, Any] = dict.fromkeys(
        ("sent", "held", "effective", "window", "limit", "percent_of_limit", "client_shows", "at")
    )
    return Reading(
        percent=percent, percent_raw=percent, source="test", state=state, cycle=cycle, **figures
    )


def test_no_signal_below_every_level() -> None:
    assert decide(None, reading(10), DEFAULT_LEVELS, set()) == []
    assert decide(reading(10), reading(None, state="unknown"), DEFAULT_LEVELS, set()) == []


def test_level_is_signalled_once_per_cycle() -> None:
    assert decide(reading(10), reading(55), DEFAULT_LEVELS, set()) == [Signal("level", 0, 50.0)]
    assert decide(reading(55), reading(56), DEFAULT_LEVELS, {50.0}) == []
    assert decide(reading(10), reading(90), DEFAULT_LEVELS, set()) == [Signal("level", 0, 65.0)]


def test_compaction_is_signalled_at_start_and_end() -> None:
    during = reading(90, state="compacting")
    assert decide(reading(90), during, DEFAULT_LEVELS, {65.0}) == [Signal("compacting", 0)]
    assert decide(during, during, DEFAULT_LEVELS, {65.0}) == []
    after = reading(None, cycle=1, state="unknown")
    assert decide(during, after, DEFAULT_LEVELS, set()) == [Signal("compacted", 0)]


def test_no_level_is_signalled_during_a_compaction() -> None:
    assert decide(None, reading(90, state="compacting"), DEFAULT_LEVELS, set()) == [
        Signal("compacting", 0)
    ]


def test_cycle_that_begins_above_a_level_is_signalled_at_once() -> None:
    signals = decide(reading(90), reading(55, cycle=1), DEFAULT_LEVELS, set())
    assert signals == [Signal("compacted", 0), Signal("level", 1, 50.0)]


def with_pending(pending: int | None, held: int | None = 96_000) -> Reading:
    """A reading of 95,000 tokens of 200,000 and 170,000."""
    return msgspec.structs.replace(
        reading(47.5),
        sent=95_000,
        held=held,
        pending=pending,
        window=Window(200_000, "set", ""),
        limit=Limit(170_000, "set", ""),
        percent_of_limit=56.5,
    )


@pytest.mark.parametrize("of", ["window", "limit", "tokens", "earlier"])
def test_level_fires_early_if_four_fifths_of_what_is_pending_reach_it(of: LevelMeasure) -> None:
    level = {"window": 50.0, "limit": 58.0, "tokens": 98_500.0, "earlier": 50.0}[of]
    few, enough = with_pending(2_000), with_pending(6_000)
    assert decide(None, few, [level], set(), of) == []
    assert decide(few, enough, [level], set(), of) == [Signal("level", 0, level)]
    assert decide(few, enough, [level], {level}, of) == []
    assert decide(few, enough, [level], set(), of, early=False) == []
    compacting = msgspec.structs.replace(enough, state="compacting")
    assert decide(compacting, compacting, [level], set(), of) == []


def test_next_call_is_expected_to_send_what_is_held_and_pending() -> None:
    expected = expect_next_call(with_pending(10_000), 1.0)
    assert (expected.sent, expected.held, expected.percent) == (106_000, 106_000, 53.0)
    assert (expected.percent_raw, expected.percent_of_limit) == (53.0, percent_raw(106, 170))
    assert expect_next_call(expected) is expected
    nothing_known = with_pending(10_000, held=None)
    assert expect_next_call(nothing_known) is nothing_known
    without_sizes = msgspec.structs.replace(with_pending(10_000), window=None, limit=None)
    assert expect_next_call(without_sizes).percent_of_limit is None
    assert expect_next_call(without_sizes).percent is None


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([], False),
        ([0, 10, 20], False),
        ([0, 10, 20, 30], True),
        ([0, 10, 20, 600], True),
        ([0, 10, 20, 601], False),
    ],
)
def test_more_than_three_compactions_in_ten_minutes_are_signalled(
    times: list[float], expected: bool
) -> None:
    assert is_thrashing(times, now=max(times, default=0)) is expected


def test_levels_may_be_of_window_limit_or_tokens() -> None:
    current = msgspec.structs.replace(reading(10), percent_of_limit=55.0, held=120_000)
    assert decide(None, current, DEFAULT_LEVELS, set()) == []
    assert decide(None, current, DEFAULT_LEVELS, set(), "limit") == [Signal("level", 0, 50.0)]
    assert decide(None, current, (100_000,), set(), "tokens") == [Signal("level", 0, 100_000)]
    assert decide(None, reading(None), (1,), set(), "tokens") == []


def test_cleared_cycle_is_no_compaction() -> None:
    signals = decide(reading(60), reading(None, cycle=1), DEFAULT_LEVELS, set(), cleared=True)
    assert signals == [Signal("cleared", 0)]


def test_next_call_is_compared_with_earlier_reasoning_and_its_own_part_of_what_is_pending() -> None:
    parts = {"held": 96_000, "pending": 10_000, "earlier reasoning": 7_000}
    now = msgspec.structs.replace(with_pending(10_000), compared=Compared(113_000, parts))
    expected = expect_next_call(now)
    assert expected.compared == Compared(111_000, {"held": 104_000, "earlier reasoning": 7_000})
    assert expected.percent_of_limit == percent_raw(111_000, 170_000)


def test_level_of_calls_left_fires_once_when_they_fall_to_it() -> None:
    def fired(calls_left: int | None, before: set[float]) -> list[Signal]:
        return decide(
            None, reading(20), [50.0], before, calls_levels=(-30.0, -10.0), calls_left=calls_left
        )

    assert fired(31, set()) == fired(None, set()) == []
    assert fired(30, set()) == [Signal("level", 0, -30.0)]
    assert fired(9, set()) == fired(0, {-30.0}) == [Signal("level", 0, -10.0)]
    assert fired(9, {-10.0}) == fired(25, {-10.0}) == []
    assert fired(9, {65.0}) == [Signal("level", 0, -10.0)]


@pytest.mark.parametrize(
    ("percent", "calls_left", "levels"),
    [(55, 9, [50.0, -10.0]), (70, 25, [-30.0, 65.0]), (55, 25, [-30.0, 50.0])],
)
def test_last_level_comes_after_one_that_fires_with_it(
    percent: float, calls_left: int, levels: list[float]
) -> None:
    """The later message cancels the one before."""
    signals = decide(
        None,
        reading(percent),
        DEFAULT_LEVELS,
        set(),
        calls_levels=(-30.0, -10.0),
        calls_left=calls_left,
    )
    assert [each.level for each in signals] == levels
