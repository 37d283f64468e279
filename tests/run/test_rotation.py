"""When a window ends: by percent of the limit and calls, without I/O."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.client_report import Quota, Quotas
from brimline.context.policy.levels import LAST_ROTATION_PERCENT
from brimline.errors import InvalidPolicy
from brimline.run.rotation import (
    ASK_CALLS,
    FINISH_CALLS,
    MAX_IDLE_WINDOWS,
    RotationCount,
    RotationRule,
    WindowState,
    reset_time,
)

Seen = tuple[float | None, int, bool]


def phases(*seen: Seen, rotate_at: float = 75.0) -> list[str]:
    """The phase after each observation: percent, calls, and whether there is a document."""
    state, passed = WindowState(), list[str]()
    for percent, calls, has_document in seen:
        state = state.after(percent, calls, rotate_at, has_document)
        passed.append(state.phase)
    return passed


def test_agent_is_asked_at_the_level_and_may_end_its_turn() -> None:
    seen = (None, 0, False), (74.9, 4, False), (75.0, 5, False), (80.0, 6, True), (81.0, 8, True)
    assert phases(*seen) == ["below", "below", "asked", "handed over", "handed over"]


def test_agent_without_a_handoff_is_stopped_after_ten_calls() -> None:
    calls = range(5, 5 + ASK_CALLS + 1)
    assert phases(*((80.0, n, False) for n in calls)) == ["asked"] * ASK_CALLS + ["stopped"]


def test_agent_without_a_handoff_is_stopped_before_the_limit() -> None:
    assert phases((80.0, 5, False), (LAST_ROTATION_PERCENT, 6, False)) == ["asked", "stopped"]


def test_agent_that_goes_on_after_its_handoff_is_stopped() -> None:
    seen = [(80.0, 5, True), (80.0, 6, True), (80.0, 6 + FINISH_CALLS, True)]
    assert phases(*seen) == ["asked", "handed over", "stopped"]


def test_jump_over_both_levels_still_asks_first() -> None:
    assert phases((99.0, 5, False), (99.0, 5, True)) == ["asked", "handed over"]


@given(st.lists(st.tuples(st.none() | st.floats(0, 200), st.integers(0, 40), st.booleans())))
def test_phase_never_goes_back_and_stops_only_after_a_request(seen: list[Seen]) -> None:
    order = ["below", "asked", "handed over", "stopped"]
    places = [order.index(phase) for phase in phases(*seen)]
    assert places == sorted(places)
    assert "asked" in phases(*seen) or set(places) <= {0}


@pytest.mark.parametrize("phase", ["below", "asked"])
def test_child_that_ends_without_a_handoff_ends_the_run(phase: str) -> None:
    state = WindowState() if phase == "below" else WindowState("asked", 3)
    assert not state.continues


def test_no_more_than_three_windows_without_progress() -> None:
    rule, count = RotationRule(75.0), RotationCount()
    for _ in range(MAX_IDLE_WINDOWS):
        assert count.refusal(rule) is None
        count = count.after(has_progress=False)
    assert "without an edit or a reply" in (count.refusal(rule) or "")
    assert count.after(has_progress=True).refusal(rule) is None


def test_no_more_rotations_than_allowed() -> None:
    rule = RotationRule(75.0, max_rotations=2)
    assert RotationCount(rotations=1).refusal(rule) is None
    assert "--max-rotations 2" in (RotationCount(rotations=2).refusal(rule) or "")


@pytest.mark.parametrize(
    ("five_hour", "seven_day", "expected"),
    [
        (None, None, None),
        (Quota(99.9, 2_000.0), None, None),
        (Quota(100, 2_000.0), None, 2_000.0),
        (Quota(100, 2_000.0), Quota(80, 9_000.0), 2_000.0),
        (Quota(100, 2_000.0), Quota(100, 9_000.0), None),
        (Quota(100, 900.0), None, None),
    ],
)
def test_only_five_hours_that_are_used_up_are_waited_for(
    five_hour: Quota | None, seven_day: Quota | None, expected: float | None
) -> None:
    assert reset_time(Quotas(1.0, five_hour, seven_day), now=1_000.0) == expected


@pytest.mark.parametrize(("percent", "most"), [(0.0, None), (92.0, None), (-5.0, 3), (75.0, 0)])
def test_rule_that_could_not_work_is_refused(percent: float, most: int | None) -> None:
    with pytest.raises(InvalidPolicy):
        RotationRule(percent, most)
