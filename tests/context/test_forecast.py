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
    MAX_GROWTHS,
    MIN_GROWTHS,
    PACE_CALLS,
    CallsLeft,
    calls_left,
    describe_calls_left,
    forecast,
    growth_pace,
    minutes_left,
)
from brimline.context.tracker import Reading, Session, Thread, fold, read
from brimline.context.usage import Usage
from brimline.context.window import Limit

tokens = st.integers(0, 2_000_000)
steps = st.lists(st.integers(1, 50_000), min_size=MIN_GROWTHS, max_size=150)
cycle = st.lists(tokens, max_size=150)


def sents(*growths: int) -> list[int]:
    """The prompts of calls that grew by these steps, from 20,000 tokens on."""
    return list(accumulate(growths, initial=20_000))


@pytest.mark.parametrize(
    ("growths", "room", "left"),
    [
        ((1_000,) * 100, 20_000, CallsLeft(21, 10, 38)),
        ((1_000,) * 100, 2_000, CallsLeft(4, 2, 7)),
        ((1_000,) * 100, 300_000, CallsLeft(164, 75, 295)),
        ((1_000,) * 10, 20_000, CallsLeft(42, 19, 76)),
        ((1_000, 0) * 50, 20_000, CallsLeft(60, 27, 108)),
        ((1_000, -1_000) * 50, 20_000, CallsLeft(60, 27, 108)),
        ((1_000,) * 99 + (40_000,), 20_000, CallsLeft(19, 9, 35)),
        ((1_000,) * 6, 1, CallsLeft(1, 1, 1)),
    ],
    ids=[
        "steady",
        "near the limit",
        "far from it",
        "a new cycle",
        "every second call adds nothing",
        "every second call leaves something out",
        "one great read",
        "a token left",
    ],
)
def test_calls_left_follow_the_growth_of_recent_calls(
    growths: tuple[int, ...], room: int, left: CallsLeft
) -> None:
    assert calls_left(sents(*growths), 50_000, 50_000 + room) == left


@pytest.mark.parametrize(
    ("growths", "limit"),
    [
        ((), 200_000),
        ((1_000,) * (MIN_GROWTHS - 1), 200_000),
        ((0,) * 20, 200_000),
        ((-5,) * 20, 200_000),
        ((1_000,) * 100, 500_000),
    ],
    ids=["a first call", "too few calls", "no growth", "only falls", "too far ahead"],
)
def test_uncertain_forecast_is_not_given(growths: tuple[int, ...], limit: int) -> None:
    assert calls_left(sents(*growths), 20_000, limit) is None


@given(cycle, tokens, st.integers(0, 500_000))
def test_no_call_is_left_at_the_limit(sent: list[int], limit: int, beyond: int) -> None:
    assert calls_left(sent, limit + beyond, limit) == CallsLeft(0, 0, 1)


@given(steps, tokens, tokens, st.integers(0, 500_000))
def test_more_room_never_gives_fewer_calls(
    growths: list[int], held: int, limit: int, more: int
) -> None:
    here = calls_left(sents(*growths), held, limit)
    higher = calls_left(sents(*growths), held, limit + more)
    lower = calls_left(sents(*growths), held - more, limit)
    assert higher == lower
    assert here is None or higher is None or all(a <= b for a, b in zip(here, higher, strict=True))


@given(steps, tokens, tokens, st.integers(2, 9))
def test_faster_growth_never_gives_more_calls(
    growths: list[int], held: int, limit: int, factor: int
) -> None:
    here = calls_left(sents(*growths), held, limit)
    faster = calls_left(sents(*(factor * growth for growth in growths)), held, limit)
    assert here is None or (faster is not None and faster.calls <= here.calls)


@given(cycle, st.lists(tokens, min_size=PACE_CALLS, max_size=PACE_CALLS))
def test_only_recent_calls_count(before: list[int], sent: list[int]) -> None:
    assert growth_pace([*before, *sent]) == growth_pace(sent)


@pytest.mark.parametrize(
    ("growths", "tokens", "count"),
    [
        ((1_000,) * 6, 1_000, 6),
        ((1_000,) * 150, 1_000, MAX_GROWTHS),
        ((9_000,) * 50 + (1_000,) * 100, 1_000, MAX_GROWTHS),
        ((400, 1_600) * 50, 900, MAX_GROWTHS),
        ((900, -500) * 50, 225, MAX_GROWTHS),
    ],
    ids=["few", "many", "only the last hundred", "of the square roots", "a fall is no growth"],
)
def test_pace_is_that_of_the_square_roots(
    growths: tuple[int, ...], tokens: float, count: int
) -> None:
    pace = growth_pace(sents(*growths))
    assert pace is not None
    assert (round(pace.tokens, 6), pace.growths) == (tokens, count)


@given(cycle, tokens, tokens)
def test_any_cycle_gives_none_or_a_range_around_its_forecast(
    sent: list[int], held: int, limit: int
) -> None:
    left = calls_left(sent, held, limit)
    assert left is None or 0 <= left.low <= left.calls <= left.high
    assert left is None or left.calls <= MAX_FORECAST_CALLS


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


STEADY = tuple(range(70_000, 150_000, 10_000))


@pytest.mark.parametrize(
    ("events", "text"),
    [
        (calls_of(*STEADY), "about 10 calls left (5-19)"),
        (calls_of(*STEADY, 170_000), "at its limit"),
        (calls_of(9_000, 170_000), "at its limit"),
        (calls_of(*STEADY[:MIN_GROWTHS]), "no forecast: too few calls"),
        (calls_of(*[9_000] * 9), "no forecast: the context does not grow"),
        (calls_of(*range(9_000, 9_080, 10)), "no forecast: too far ahead"),
        ([*calls_of(*STEADY), Compacted()], "no forecast: awaiting a reply after a compaction"),
        ([*calls_of(*STEADY), Cleared()], "no forecast: awaiting a reply after a clear"),
    ],
)
def test_forecast_or_why_there_is_none_is_described(events: Sequence[AnyEvent], text: str) -> None:
    assert describe_calls_left(*thread_of(*events)) == text


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (None, "no forecast: the limit is unknown"),
        (Limit(200_000, "off", "set so"), "about 19 calls left (9-34) until the window is full"),
    ],
)
def test_forecast_without_a_limit_or_compaction_is_described(
    limit: Limit | None, text: str
) -> None:
    thread, reading = thread_of(*calls_of(*STEADY))
    assert describe_calls_left(thread, msgspec.structs.replace(reading, limit=limit)) == text


def test_thread_without_a_call_awaits_its_first_reply() -> None:
    session = Session(agent="claude", threads={"main": Thread("main")})
    reading = read(session, session.threads["main"], "transcript")
    assert describe_calls_left(session.threads["main"], reading) == (
        "no forecast: awaiting the first reply"
    )


def test_forecast_ends_at_the_window_if_the_limit_is_beyond_it() -> None:
    """Claude Code takes a model of another maker for one of 1,000,000 tokens."""
    sizes = range(30_000, 110_000, 10_000)
    calls = [Call(id=str(n), usage=Usage(n, 0, 0, 0), model="kimi-k2.5") for n in sizes]
    session = fold(Session(agent="claude", version="2.1.325"), calls)
    reading = read(session, session.threads["main"], "transcript")
    assert reading.window is not None
    assert reading.limit is not None
    assert (reading.window.tokens, reading.limit.tokens) == (262_144, 967_000)
    left = forecast(session.threads["main"], reading)
    assert left == calls_left(sizes, 100_000, 262_144)
    left = forecast(session.threads["main"], msgspec.structs.replace(reading, window=None))
    assert left == calls_left(sizes, 100_000, 967_000)  # to the limit, if no window is known


def at(*times: float | None) -> Thread:
    """A thread whose calls were at these times."""
    calls = [
        Call(id=str(place), at=time, usage=Usage(10_000 + 1_000 * place, 0, 0, 0))
        for place, time in enumerate(times)
    ]
    return fold(Session(), calls).threads["main"]


TEN = CallsLeft(10, 4, 18)


@pytest.mark.parametrize(
    ("times", "minutes"),
    [
        ((0, 30, 60, 90), 5.0),
        ((0, 30, 60, 90, 7_290, 7_320), 5.0),
        ((0, 300, 600, 900), 50.0),
        ((0, 301, 602, 903), None),
        ((0, 30, 60), None),
        ((0, 30, 10, 40, 70), 5.0),
        ((0, 0, 0, 0), None),
        ((None, None, None, None, None), None),
    ],
    ids=[
        "steady",
        "without a pause of two hours",
        "slow work",
        "only pauses",
        "too few calls",
        "a clock that went back",
        "one time for all",
        "no times",
    ],
)
def test_minutes_left_are_those_of_work(
    times: tuple[float | None, ...], minutes: float | None
) -> None:
    assert minutes_left(at(*times), TEN) == minutes
    assert minutes_left(at(*times), None) is None


def test_no_minutes_are_left_at_the_limit() -> None:
    assert minutes_left(at(0, 30, 60, 90), CallsLeft(0, 0, 1)) == 0


@given(st.lists(st.none() | st.floats(0, 1e10), max_size=120), st.integers(0, 200))
def test_minutes_left_are_never_negative_nor_more_than_five_for_a_call(
    times: list[float | None], calls: int
) -> None:
    minutes = minutes_left(at(*times), CallsLeft(calls, 0, calls)) if times else None
    assert minutes is None or 0 <= minutes <= 5 * calls
