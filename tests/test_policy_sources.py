"""Two sources for one thread, and none."""

from hypothesis import given
from hypothesis import strategies as st

from brimline.policy.sources import AGREED, LASTS, SEEN, UNHEARD, compared, unheard

TOKENS = st.integers(min_value=0, max_value=2_000_000)


def test_apart_for_a_while() -> None:
    """Sources disagree when they were seen apart several times, over a while."""
    now = AGREED
    for seen in range(SEEN):
        assert not now.lasting(1_000.0)
        now = compared(now, 100_000, 103_000, float(seen))
    assert not now.lasting(LASTS - 1)
    assert now.lasting(LASTS)


def test_unknown_tells_nothing() -> None:
    """Where one is unknown they are neither together nor apart."""
    apart = compared(AGREED, 100, 200, 1.0)
    assert compared(apart, None, 200, 2.0) == apart
    assert compared(apart, 100, None, 2.0) == apart


@given(one=TOKENS, part=st.floats(min_value=0.981, max_value=1.0))
def test_near_is_agreed(one: int, part: float) -> None:
    """Two per cent are no difference; it does not matter which is asked first."""
    other = round(one * part)
    apart = compared(AGREED, 1, 1_000, 1.0)
    assert compared(apart, one, other, 2.0) == compared(apart, other, one, 2.0)
    if one - other <= 0.02 * one:
        assert compared(apart, one, other, 2.0) == AGREED


def test_unheard() -> None:
    """Calls that no hook told of, in a session that began after hooks were installed."""
    assert unheard(UNHEARD, begun=20.0, hooked_since=10.0)
    assert not unheard(UNHEARD - 1, begun=20.0, hooked_since=10.0)
    assert not unheard(UNHEARD, begun=5.0, hooked_since=10.0)
    assert not unheard(UNHEARD, begun=None, hooked_since=10.0)
    assert not unheard(UNHEARD, begun=20.0, hooked_since=None)
