"""The cost of each call, and of its cache miss, as the monitor stores them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.cache_misses import find_misses
from brimline.events import AnyEvent, Call, Compacted
from brimline.monitor.call_costs import CallCosts
from brimline.tracker import Session, fold
from brimline.tracker.retention import drop_stored_calls
from brimline.usage import Usage

MODEL = "claude-opus-4-5"
USAGE = Usage(input=5, cache_read=0, cache_write=0, output=0)


def call(number: int, *, read: int, write: int = 0, model: str | None = MODEL) -> Call:
    usage = Usage(input=10, cache_read=read, cache_write=write, output=100)
    return Call(id=f"c{number}", usage=usage, model=model, at=1_000.0 + number)


CALLS = [
    call(0, read=0, write=20_000),
    call(1, read=20_000, write=5_000),
    call(2, read=0, write=26_000),  # a miss
    call(3, read=26_000, write=1_000),
    call(4, read=18_000, write=9_000),  # a smaller one
]


def folded(events: list[AnyEvent]) -> Session:
    return fold(Session(), events)


def test_cost_is_the_list_price_and_a_miss_adds_what_it_paid_more() -> None:
    thread = folded([*CALLS]).threads["main"]
    costs, miss_costs = zip(*CallCosts().costs_from(thread, 0), strict=True)
    # Per million: input $5, cache read $0.50, cache write $6.25, output $25.
    assert costs[1] == pytest.approx((10 * 5 + 20_000 * 0.5 + 5_000 * 6.25 + 100 * 25) / 1e6)
    assert [miss is not None for miss in miss_costs] == [False, False, True, False, True]
    assert miss_costs[2] == pytest.approx(25_000 * (6.25 - 0.5) / 1e6)


def test_cost_of_a_model_without_a_price_is_the_clients_own() -> None:
    known = Call(id="a", usage=USAGE, model="no-such-model", cost=0.25)
    unknown = Call(id="b", usage=USAGE, model="no-such-model")
    thread = folded([known, unknown]).threads["main"]
    assert list(CallCosts().costs_from(thread, 0)) == [(0.25, None), (None, None)]


def test_calls_of_a_compaction_continue_no_call_and_miss_nothing() -> None:
    calls = [call(n, read=each.usage.cache_read) for n, each in enumerate(CALLS)]
    side = [Call(id=each.id, usage=each.usage, model=MODEL, thread="acompact-1") for each in calls]
    thread = folded([*side]).threads["acompact-1"]
    assert all(miss is None for _, miss in CallCosts().costs_from(thread, 0))


STOPS = st.lists(st.integers(0, 5), max_size=6).map(sorted)


@given(STOPS, st.sampled_from([None, 2, 4]), st.booleans())
def test_rows_made_step_by_step_equal_those_made_at_once(
    stops: list[int], compacted_at: int | None, drops: bool
) -> None:
    """A later copy of the last call, and old calls that left the memory, change no miss."""
    events: list[AnyEvent] = [*CALLS]
    if compacted_at is not None:
        events.insert(compacted_at, Compacted(at=1_000.0 + compacted_at))
    whole = folded(events).threads["main"]
    expected = {miss.call: miss.cost for miss in find_misses(whole)}
    costs, session, rows = CallCosts(), Session(), dict[str, float | None]()
    for start, stop in pairwise([0, *stops, len(events)]):
        again = [each for each in events[max(0, start - 1) : start] if isinstance(each, Call)]
        session = fold(session, [*again, *events[start:stop]])
        thread = session.threads.get("main")
        if thread is None:
            continue
        first = max(0, len(rows) - 1)
        for each, (_, miss) in zip(
            thread.calls_from(first), costs.costs_from(thread, first), strict=True
        ):
            rows[each.id] = miss
        if drops:
            session = drop_stored_calls(session, session, 2)
    assert {id: miss for id, miss in rows.items() if miss is not None} == expected
