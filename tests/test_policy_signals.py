"""What there is to say when a reading becomes another."""

from typing import Any

import msgspec
import pytest

from brimline.policy.levels import DEFAULT_LEVELS
from brimline.policy.signals import Signal, decide, is_thrashing
from brimline.tracker import Reading, ReadingState


def reading(percent: float | None, cycle: int = 0, state: ReadingState = "measured") -> Reading:
    """A reading at a percentage."""
    figures: dict[str, Any] = dict.fromkeys(
        ("sent", "held", "effective", "window", "limit", "percent_of_limit", "client_shows", "at")
    )
    return Reading(
        percent=percent, percent_raw=percent, source="test", state=state, cycle=cycle, **figures
    )


def test_nothing() -> None:
    """Below every level there is nothing to say."""
    assert decide(None, reading(10), DEFAULT_LEVELS, set()) == []
    assert decide(reading(10), reading(None, state="unknown"), DEFAULT_LEVELS, set()) == []


def test_level() -> None:
    """A level that is reached is said in its cycle, unless it was."""
    assert decide(reading(10), reading(55), DEFAULT_LEVELS, set()) == [Signal("level", 0, 50.0)]
    assert decide(reading(55), reading(56), DEFAULT_LEVELS, {50.0}) == []
    assert decide(reading(10), reading(90), DEFAULT_LEVELS, set()) == [Signal("level", 0, 65.0)]


def test_compaction() -> None:
    """A compaction is said when it begins, and when its cycle has ended."""
    during = reading(90, state="compacting")
    assert decide(reading(90), during, DEFAULT_LEVELS, {65.0}) == [Signal("compacting", 0)]
    assert decide(during, during, DEFAULT_LEVELS, {65.0}) == []
    after = reading(None, cycle=1, state="unknown")
    assert decide(during, after, DEFAULT_LEVELS, set()) == [Signal("compacted", 0)]


def test_no_level_during_a_compaction() -> None:
    """While it compacts nothing is said of a level."""
    assert decide(None, reading(90, state="compacting"), DEFAULT_LEVELS, set()) == [
        Signal("compacting", 0)
    ]


def test_compaction_that_ends_above_a_level() -> None:
    """A cycle that begins above a level says so at once."""
    said = decide(reading(90), reading(55, cycle=1), DEFAULT_LEVELS, set())
    assert said == [Signal("compacted", 0), Signal("level", 1, 50.0)]


@pytest.mark.parametrize(
    ("times", "expected"),
    [([0, 10, 20], False), ([0, 10, 20, 30], True), ([0, 10, 20, 700], False), ([], False)],
)
def test_thrash(times: list[float], expected: bool) -> None:
    """More than three compactions in ten minutes are too many."""
    assert is_thrashing(times, now=max(times, default=0)) is expected


def test_measures() -> None:
    """Levels can be of the window, of the limit, or tokens."""
    told = msgspec.structs.replace(reading(10), percent_of_limit=55.0, held=120_000)
    assert decide(None, told, DEFAULT_LEVELS, set()) == []
    assert decide(None, told, DEFAULT_LEVELS, set(), "limit") == [Signal("level", 0, 50.0)]
    assert decide(None, told, (100_000,), set(), "tokens") == [Signal("level", 0, 100_000)]
    assert decide(None, reading(None), (1,), set(), "tokens") == []


def test_clear() -> None:
    """A cycle that was cleared was not compacted."""
    said = decide(reading(60), reading(None, cycle=1), DEFAULT_LEVELS, set(), cleared=True)
    assert said == [Signal("cleared", 0)]
