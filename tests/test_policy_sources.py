"""Two sources for one thread, and none."""

from hypothesis import given
from hypothesis import strategies as st

from brimline.policy.sources import (
    AGREED,
    DISAGREE_AFTER_S,
    DISAGREE_TIMES,
    MAX_CALLS_WITHOUT_HOOK,
    are_hooks_silent,
    compare,
)

TOKENS = st.integers(min_value=0, max_value=2_000_000)


def test_apart_for_a_while() -> None:
    """Sources disagree when they were seen apart several times, over a while."""
    now = AGREED
    for seen in range(DISAGREE_TIMES):
        assert not now.is_lasting(1_000.0)
        now = compare(now, 100_000, 103_000, float(seen))
    assert not now.is_lasting(DISAGREE_AFTER_S - 1)
    assert now.is_lasting(DISAGREE_AFTER_S)


def test_unknown_tells_nothing() -> None:
    """Where one is unknown they are neither together nor apart."""
    apart = compare(AGREED, 100, 200, 1.0)
    assert compare(apart, None, 200, 2.0) == apart
    assert compare(apart, 100, None, 2.0) == apart


@given(one=TOKENS, part=st.floats(min_value=0.981, max_value=1.0))
def test_near_is_agreed(one: int, part: float) -> None:
    """Two per cent are no difference; it does not matter which is asked first."""
    other = round(one * part)
    apart = compare(AGREED, 1, 1_000, 1.0)
    assert compare(apart, one, other, 2.0) == compare(apart, other, one, 2.0)
    if one - other <= 0.02 * one:
        assert compare(apart, one, other, 2.0) == AGREED


def test_unheard() -> None:
    """Calls that no hook told of, in a session that began after hooks were installed."""
    assert are_hooks_silent(MAX_CALLS_WITHOUT_HOOK, first_call_at=20.0, installed_at=10.0)
    assert not are_hooks_silent(MAX_CALLS_WITHOUT_HOOK - 1, first_call_at=20.0, installed_at=10.0)
    assert not are_hooks_silent(MAX_CALLS_WITHOUT_HOOK, first_call_at=5.0, installed_at=10.0)
    assert not are_hooks_silent(MAX_CALLS_WITHOUT_HOOK, first_call_at=None, installed_at=10.0)
    assert not are_hooks_silent(MAX_CALLS_WITHOUT_HOOK, first_call_at=20.0, installed_at=None)
