"""Changes of a session's view: applied in order they give the encoded view."""

from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from brimline.api.event_stream import SessionChange
from brimline.api.session_change import Json, apply_change, find_change
from brimline.api.views import SessionView, ThreadView, sample
from brimline.context.client_report import PromptCache, Quotas
from brimline.context.need import Need
from brimline.monitor.handoffs import NO_HANDOFF, HandoffStatus
from brimline.store.rows import SessionRow

TOKENS = st.integers(0, 3)  # few values, so that fields return to earlier ones

THREADS = st.builds(
    ThreadView,
    session=st.just("s1"),
    thread=st.just("main"),
    cycle=TOKENS,
    seq=TOKENS,
    source=st.just("transcript"),
    state=st.sampled_from(["measured", "compacting"]),
    at=st.none() | st.floats(0, 3),
    sent=st.none() | TOKENS,
    model=st.none() | st.sampled_from(["a", "b"]),
    levels=st.sampled_from([[50.0, 65.0], []]),
    fullness=st.none() | st.sampled_from(["low", "high"]),
    pending_level=st.none() | st.just(50.0),
)


@st.composite
def thread_lists(draw: st.DrawFn) -> list[ThreadView]:
    """Threads with different names, in any order."""
    names = draw(st.lists(st.sampled_from(["main", "sub-1", "sub-2"]), unique=True))
    return [msgspec.structs.replace(draw(THREADS), thread=name) for name in names]


VIEWS = st.builds(
    SessionView,
    session=st.builds(
        SessionRow,
        id=st.just("s1"),
        agent=st.just("claude"),
        seen_at=st.floats(0, 3),
        title=st.none() | st.sampled_from(["x", "y"]),
    ),
    threads=thread_lists(),
    levels=st.sampled_from([[50.0, 65.0], []]),
    limit_at=st.none() | st.floats(0, 100),
    trend=st.lists(TOKENS, max_size=6),
    handoff=st.just(NO_HANDOFF) | st.builds(HandoffStatus, st.just("fresh"), st.floats(0, 3)),
    unread=TOKENS,
    budget=st.none() | st.just(5.0),
    cost=st.none() | st.floats(0, 9),
    undeliverable=st.none() | st.just("It has no hooks."),
    calls_left=st.none() | TOKENS,
    calls_left_range=st.none() | st.lists(TOKENS, min_size=2, max_size=2),
    last_handoff_path=st.none() | st.just("/h.md"),
    resume_command=st.none() | st.just("agent --resume s1"),
    quotas=st.none() | st.builds(Quotas, st.floats(0, 3)),
    prompt_cache=st.none() | st.builds(PromptCache, warm=st.booleans()),
    need=st.none() | st.builds(Need, st.just("level"), st.just("Ask.")),
    rank=st.lists(st.floats(-3, 3), min_size=3, max_size=3),
).map(lambda view: decode(msgspec.json.encode(view)))


def decode(data: bytes) -> Json:
    return msgspec.json.decode(data)


def send(before: Json, after: Json) -> Json | None:
    """Return the change between two views, after it went over the wire."""
    return decode(msgspec.json.encode(find_change(before, after)))


@given(st.lists(VIEWS, min_size=2, max_size=6), st.data())
def test_changes_lead_from_any_earlier_view_to_the_last(
    views: list[Json], data: st.DataObject
) -> None:
    view: Json = data.draw(st.sampled_from(views))
    for before, after in pairwise(views):
        change = send(before, after)
        if change is not None:
            view = apply_change(view, change)
    assert view == views[-1]


@given(VIEWS, VIEWS)
def test_changes_match_the_openapi_document(before: Json, after: Json) -> None:
    change = send(before, after)
    if change is not None:
        assert msgspec.to_builtins(msgspec.convert(change, SessionChange)) == change


@given(VIEWS)
def test_equal_views_have_no_change(view: Json) -> None:
    assert find_change(view, decode(msgspec.json.encode(view))) is None


def test_change_has_only_the_changed_fields() -> None:
    before = example_view(sent=10, trend=[5, 10])
    after = example_view(sent=20, trend=[5, 10, 20])
    assert find_change(before, after) == {
        "id": "s1",
        "threads": {"main": {"sent": 20}},
        "trend": {"keep": 2, "add": [20]},
    }


def test_new_thread_replaces_the_list() -> None:
    """Names alone do not give its position."""
    before, after = example_view(sent=10), example_view(sent=10)
    after["threads"].append({**after["threads"][0], "thread": "sub-1"})
    assert find_change(before, after) == {"id": "s1", "threads": after["threads"]}


def test_values_that_become_unknown_are_sent_as_null() -> None:
    change = send(example_view(sent=10), example_view(sent=None))
    assert change == {"id": "s1", "threads": {"main": {"sent": None}}}


def test_applying_a_change_does_not_mutate_the_view() -> None:
    before = example_view(sent=10, trend=[10])
    copy = decode(msgspec.json.encode(before))
    apply_change(
        before, {"id": "s1", "threads": {"main": {"sent": 1}}, "trend": {"keep": 0, "add": []}}
    )
    assert before == copy


@given(st.integers(0, 500))
def test_one_more_call_sends_few_points_of_the_trend(calls: int) -> None:
    """Points have fixed places until their distance grows."""
    before, after = sample(list(range(calls))), sample(list(range(calls + 1)))
    assert len(after) <= 60
    assert after[-1:] == [calls]
    assert not before or (before[0], after[0]) == (0, 0)
    grows = (calls - 1) % 59 == 0
    common = sum(old == new for old, new in zip(before, after, strict=False))
    assert grows or common >= len(before) - 1


def example_view(sent: int | None, **fields: Any) -> Json:
    row = ThreadView(
        "s1",
        "main",
        0,
        1,
        "transcript",
        "measured",
        sent=sent,
        levels=[],
        fullness=None,
        pending_level=None,
    )
    session = SessionRow("s1", "claude", 1.0)
    view = SessionView(
        session,
        [row],
        [],
        None,
        [],
        NO_HANDOFF,
        0,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        [],
        [],
        False,
    )
    return {**decode(msgspec.json.encode(view)), **fields}
