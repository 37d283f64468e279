"""Disagreement between two sources of one thread, and missing hooks."""

from hypothesis import given
from hypothesis import strategies as st

from brimline.context.policy.signals import (
    AGREED,
    DISAGREE_AFTER_S,
    DISAGREE_TIMES,
    MAX_CALLS_WITHOUT_HOOK,
    are_hooks_silent,
    compare,
)

TOKENS = st.integers(min_value=0, max_value=2_000_000)


def test_sources_disagree_after_several_differences_over_time() -> None:
    now = AGREED
    for count in range(DISAGREE_TIMES):
        assert not now.is_lasting(1_000.0)
        now = compare(now, 100_000, 103_000, float(count))
    assert not now.is_lasting(DISAGREE_AFTER_S - 1)
    assert now.is_lasting(DISAGREE_AFTER_S)


def test_unknown_source_neither_agrees_nor_disagrees() -> None:
    apart = compare(AGREED, 100, 200, 1.0)
    assert compare(apart, None, 200, 2.0) == apart
    assert compare(apart, 100, None, 2.0) == apart


@given(first=TOKENS, part=st.floats(min_value=0.981, max_value=1.0))
def test_two_percent_are_no_difference_in_either_order(first: int, part: float) -> None:
    second = round(first * part)
    apart = compare(AGREED, 1, 1_000, 1.0)
    assert compare(apart, first, second, 2.0) == compare(apart, second, first, 2.0)
    if first - second <= 0.02 * first:
        assert compare(apart, first, second, 2.0) == AGREED


def test_difference_is_a_share_of_the_larger_figure() -> None:
    assert compare(AGREED, 98_000, 100_000, 1.0) == AGREED
    assert compare(AGREED, 97_999, 100_000, 1.0) != AGREED


def test_calls_without_hooks_are_reported_after_installation_only() -> None:
    assert are_hooks_silent(MAX_CALLS_WITHOUT_HOOK, first_call_at=20.0, installed_at=10.0)
    assert not are_hooks_silent(MAX_CALLS_WITHOUT_HOOK - 1, first_call_at=20.0, installed_at=10.0)
    assert not are_hooks_silent(MAX_CALLS_WITHOUT_HOOK, first_call_at=5.0, installed_at=10.0)
    assert not are_hooks_silent(MAX_CALLS_WITHOUT_HOOK, first_call_at=None, installed_at=10.0)
    assert not are_hooks_silent(MAX_CALLS_WITHOUT_HOOK, first_call_at=20.0, installed_at=None)
