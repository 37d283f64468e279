"""The forecast of calls left until the limit."""

from collections.abc import Sequence
from itertools import accumulate

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.events import AnyEvent, Call, Cleared, Compacted
from brimline.context.forecast import (
    MAX_FORECAST_CALLS,
    MAX_PACE_CALLS,
    MIN_GROWTHS,
    CallsLeft,
    calls_left,
    describe_calls_left,
    forecast,
    growth_pace,
)
from brimline.context.tracker import Reading, Session, Thread, fold, read
from brimline.context.usage import Usage
from brimline.context.window import Limit

tokens = st.integers(0, 2_000_000)
steps = st.lists(st.integers(1, 50_000), min_size=MIN_GROWTHS, max_size=150)
cycle = st.lists(tokens, max_size=150)


def count_left(sent: list[int], held: int, limit: int) -> int | None:
    """The forecast without its range."""
    left = calls_left(sent, held, limit)
    return left and left.calls


def sents(*growths: int) -> list[int]:
    """The prompts of calls that grew by these steps, from 20,000 tokens on."""
    return list(accumulate(growths, initial=20_000))


@pytest.mark.parametrize(
    ("growths", "held", "limit", "left"),
    [
        ((1_000, 1_000, 1_000), 23_500, 33_500, 10),
        ((1_000, 1_000, 1_000), 23_500, 33_501, 11),
        ((1_000, 2_000, 3_000), 26_000, 27_000, 1),
        ((1_000, 1_000, 1_000), 40_000, 40_000, 0),
        ((1_000, 1_000, 1_000), 50_000, 40_000, 0),
        ((1_000, 1_000, 1_000, 90_000, 1_000), 114_000, 124_000, 10),
        ((1_000, 1_000, 1_000), 23_000, 223_000, 200),
        ((1_000, 1_000, -9_000, 1_000), 14_000, 24_000, 10),
        ((1_000, 0, 1_000, 0, 1_000), 23_000, 33_000, 10),
    ],
    ids=[
        "steady",
        "a token more",
        "a part of a call",
        "at the limit",
        "past the limit",
        "one great read",
        "as far ahead as it goes",
        "something left out",
        "calls that add nothing",
    ],
)
def test_calls_left_follow_the_growth_of_recent_calls(
    growths: tuple[int, ...], held: int, limit: int, left: int
) -> None:
    assert count_left(sents(*growths), held, limit) == left


@pytest.mark.parametrize("growths", [(), (5,), (5, 5), (5, 5, 0, -3, 0), (0,) * 20, (-5,) * 20])
def test_fewer_than_three_growths_give_no_forecast(growths: tuple[int, ...]) -> None:
    assert calls_left(sents(*growths), 20_000, 200_000) is None


@pytest.mark.parametrize(
    ("growths", "held"),
    [
        ((250, 250, 250, 250), 21_000),
        ((1_000, 1_000, 78_000), 100_000),
        ((1_000, 78_000, 1_000), 100_000),
        ((1_000,) * 20 + (40_000,), 80_000),
        ((1_000, 40_000, 50_000, 1_000, 1_000, 1_000), 114_000),
    ],
    ids=[
        "661 calls ahead",
        "right after a jump",
        "a jump among few calls",
        "right after a jump among many calls",
        "two jumps, of which one is trimmed",
    ],
)
def test_uncertain_forecast_is_not_given(growths: tuple[int, ...], held: int) -> None:
    assert calls_left(sents(*growths), held, 167_000) is None


@given(steps, tokens, tokens)
def test_forecast_is_between_smallest_and_largest_growth(
    growths: list[int], held: int, limit: int
) -> None:
    left = count_left(sents(*growths), held, limit)
    room, recent = max(0, limit - held), growths[-MAX_PACE_CALLS:]
    if left is not None:
        assert room // max(recent) <= left <= -(-room // min(recent))


@given(steps, tokens, tokens, st.integers(0, 500_000))
def test_more_room_never_gives_fewer_calls(
    growths: list[int], held: int, limit: int, more: int
) -> None:
    here = count_left(sents(*growths), held, limit)
    higher = count_left(sents(*growths), held, limit + more)
    lower = count_left(sents(*growths), held - more, limit)
    assert higher == lower
    assert here is None or higher is None or here <= higher


@given(st.integers(1, 10_000), st.integers(MIN_GROWTHS, 200), st.integers(0, MAX_FORECAST_CALLS))
def test_forecast_of_a_constant_growth_is_exact(pace: int, calls: int, left: int) -> None:
    prompts = sents(*[pace] * calls)
    assert count_left(prompts, prompts[-1] + 77, prompts[-1] + 77 + left * pace) == left


@given(cycle, cycle)
def test_only_recent_calls_count(before: list[int], sent: list[int]) -> None:
    recent = (
        (sent + [sent[-1]] * (MAX_PACE_CALLS + 1 - len(sent)))
        if sent
        else [0] * (MAX_PACE_CALLS + 1)
    )
    assert growth_pace([*before, *recent]) == growth_pace(recent)


def test_pace_is_of_a_hundred_calls_less_ten_at_each_end() -> None:
    assert growth_pace(sents(*[1_000] * 150)) == (80_000, 80)
    assert growth_pace(sents(*[9_000] * 50, *[1_000] * 100)) == (80_000, 80)
    assert growth_pace(sents(*[1_000] * 50, *[3_000] * 50)) == (160_000, 80)


@pytest.mark.parametrize(
    ("growths", "pace"),
    [
        ((3, 4, 5, 6), (18, 4)),
        ((3, 4, 5, 6, 7), (15, 3)),
        (tuple(range(1, 20)), (sum(range(2, 19)), 17)),
        (tuple(range(1, 21)), (sum(range(3, 19)), 16)),
    ],
    ids=["four: none left out", "five: one at each end", "nineteen: one", "twenty: two"],
)
def test_pace_leaves_out_a_tenth_of_the_growths_at_each_end(
    growths: tuple[int, ...], pace: tuple[int, int]
) -> None:
    assert growth_pace(sents(*growths)) == pace


@given(cycle, tokens, tokens)
def test_any_cycle_gives_none_or_a_count(sent: list[int], held: int, limit: int) -> None:
    left = calls_left(sent, held, limit)
    assert left is None or 0 <= left.low <= left.calls < left.high


@pytest.mark.parametrize(
    ("growths", "left", "low", "high"),
    [(3, 10, 1, 52), (25, 10, 4, 25), (100, 10, 5, 18), (150, 10, 5, 18), (100, 0, 0, 1)],
)
def test_range_of_the_forecast_narrows_with_more_growths(
    growths: int, left: int, low: int, high: int
) -> None:
    prompts = sents(*[1_000] * growths)
    forecast = calls_left(prompts, prompts[-1], prompts[-1] + left * 1_000)
    assert forecast == CallsLeft(left, low, high)


def test_range_of_a_forecast_has_its_two_ends() -> None:
    assert CallsLeft(12, 9, 17).range == [9, 17]


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (CallsLeft(12, 9, 17), "12 calls left (9-17)"),
        (CallsLeft(7, 3, 12), "7 calls left (3-12)"),
        (CallsLeft(7, 3, 13), "7 calls left"),
        (CallsLeft(1, 0, 3), "1 call left"),
    ],
)
def test_forecast_is_written_with_a_range_that_is_narrow(left: CallsLeft, text: str) -> None:
    assert str(left) == text


def thread_of(*events: AnyEvent) -> tuple[Thread, Reading]:
    session = fold(Session(agent="claude", version="2.1.325"), events)
    return session.threads["main"], read(session, session.threads["main"], "transcript")


def calls_of(*sents: int) -> list[Call]:
    return [
        Call(id=str(place), usage=Usage(sent, 0, 0, 0), model="claude-sonnet-4-5")
        for place, sent in enumerate(sents)
    ]


FIVE = (100_000, 110_000, 120_000, 130_000, 140_000)


@pytest.mark.parametrize(
    ("events", "text"),
    [
        (calls_of(*FIVE), "about 3 calls left"),
        (calls_of(*FIVE, 170_000), "at its limit"),
        (calls_of(*FIVE[:3]), "no forecast: too few calls"),
        (calls_of(9_000, 9_001, 9_001, 9_000, 8_999), "no forecast: the context hardly grows"),
        (calls_of(9_000, 9_100, 9_200, 80_000), "no forecast: uneven growth"),
        (calls_of(9_000, 9_010, 9_020, 9_030), "no forecast: too far ahead"),
        ([*calls_of(*FIVE), Compacted()], "no forecast: awaiting a reply after a compaction"),
        ([*calls_of(*FIVE), Cleared()], "no forecast: awaiting a reply after a clear"),
    ],
)
def test_forecast_or_why_there_is_none_is_described(events: Sequence[AnyEvent], text: str) -> None:
    assert describe_calls_left(*thread_of(*events)) == text


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (None, "no forecast: the limit is unknown"),
        (Limit(200_000, "off", "set so"), "about 6 calls left until the window is full"),
    ],
)
def test_forecast_without_a_limit_or_compaction_is_described(
    limit: Limit | None, text: str
) -> None:
    thread, reading = thread_of(*calls_of(*FIVE))
    assert describe_calls_left(thread, msgspec.structs.replace(reading, limit=limit)) == text


def test_thread_without_a_call_awaits_its_first_reply() -> None:
    session = Session(agent="claude", threads={"main": Thread("main")})
    reading = read(session, session.threads["main"], "transcript")
    assert describe_calls_left(session.threads["main"], reading) == (
        "no forecast: awaiting the first reply"
    )


def test_forecast_ends_at_the_window_if_the_limit_is_beyond_it() -> None:
    """Claude Code takes a model of another maker for one of 1,000,000 tokens."""
    sizes = [50_000 + 10_000 * number for number in range(6)]
    calls = [Call(id=str(n), usage=Usage(n, 0, 0, 0), model="kimi-k2.5") for n in sizes]
    session = fold(Session(agent="claude", version="2.1.325"), calls)
    reading = read(session, session.threads["main"], "transcript")
    assert reading.window is not None
    assert reading.limit is not None
    assert (reading.window.tokens, reading.limit.tokens) == (262_144, 967_000)
    left = forecast(session.threads["main"], reading)
    assert left is not None
    assert left.calls == 17  # of 10,000 tokens, from 100,000 to 262,144
    left = forecast(session.threads["main"], msgspec.structs.replace(reading, window=None))
    assert left is not None
    assert left.calls == 87  # to the limit, if no window is known
