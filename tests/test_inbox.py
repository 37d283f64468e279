"""Messages: whose turn it is, in which order, and what is never handed out."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.inbox import (
    DELIVERY_LEASE_S,
    MAX_CONTEXT_CHARS,
    Message,
    Moment,
    deliverable,
    is_pending,
    join_texts,
    take_that_fit,
    utf16_length,
    with_expiry,
)


def message(order: int = 0, **more: Any) -> Message:
    """A message of a session."""
    return Message(f"m{order}", "s", f"text {order}", at=0.0, order=order, **more)


def test_order() -> None:
    """Urgent ones overtake, each kind keeps its order."""
    waiting = [
        message(3),
        message(1),
        message(4, urgency="urgent"),
        message(2, urgency="urgent"),
    ]
    assert [m.order for m in deliverable(waiting, "turn", now=1.0)] == [2, 4, 1, 3]


def test_at_a_tool() -> None:
    """At a tool's result only what is urgent is said."""
    waiting = [message(1), message(2, urgency="urgent")]
    assert [m.order for m in deliverable(waiting, "tool", now=1.0)] == [2]


def test_only_messages_of_other_senders_keep_a_turn_going() -> None:
    """A level waits for the next prompt or tool result, however urgent it is."""
    waiting = [message(1), message(2, sender="user"), message(3, urgency="urgent")]
    assert [m.order for m in deliverable(waiting, "stop", now=1.0)] == [2]


@pytest.mark.parametrize("moment", ["turn", "tool", "stop"])
def test_during_a_compaction(moment: Moment) -> None:
    """Nothing is delivered during a compaction."""
    assert deliverable([message(urgency="urgent")], moment, now=1.0, compacting=True) == []


def test_expiry() -> None:
    """What has expired is no news."""
    assert is_pending(message(expires=10.0), now=9.9)
    assert not is_pending(message(expires=10.0), now=10.0)


@pytest.mark.parametrize("state", ["delivered", "cancelled", "expired"])
def test_what_is_over(state: Any) -> None:
    """What was delivered, cancelled or has expired is not handed out again."""
    assert not is_pending(message(state=state), now=1.0)


def test_lease() -> None:
    """What a hook was given and never passed on is handed out again after a while."""
    handed = message(state="handed", handed_at=100.0)
    assert not is_pending(handed, now=100.0 + DELIVERY_LEASE_S - 1)
    assert is_pending(handed, now=100.0 + DELIVERY_LEASE_S)
    assert not is_pending(handed, now=99.0), "a clock that is a little behind"
    assert is_pending(msgspec.structs.replace(handed, handed_at=None), now=100.0)


def test_together() -> None:
    """A batch is one text."""
    assert join_texts([message(1), message(2)]) == "text 1\n\ntext 2"
    assert join_texts([]) == ""


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["queued", "delivered"])), max_size=12))
def test_nothing_is_lost_or_said_twice(told: list[tuple[bool, Any]]) -> None:
    """At a turn exactly what is queued is handed out, each once."""
    waiting = [
        message(place, urgency="urgent" if urgent else "sequential", state=state)
        for place, (urgent, state) in enumerate(told)
    ]
    batch = deliverable(waiting, "turn", now=1.0)
    assert sorted(m.order for m in batch) == [m.order for m in waiting if m.state == "queued"]


def test_expired() -> None:
    """A message that nobody was given in time has expired; what became of others stays."""
    assert with_expiry(message(expires=10.0), 10.0).state == "expired"
    assert with_expiry(message(expires=10.0, state="handed"), 10.0).state == "expired"
    assert with_expiry(message(expires=10.0), 9.0).state == "queued"
    assert with_expiry(message(expires=10.0, state="delivered"), 11.0).state == "delivered"


def test_length() -> None:
    """Characters are counted as clients count them: an emoji is two."""
    assert utf16_length("a😀ü") == 4


@given(st.lists(st.text(min_size=1, max_size=40), max_size=12), st.integers(0, 200))
def test_fitting(texts: list[str], room: int) -> None:
    """The first ones that have room together are taken; the next one would be too much."""
    all_of = [msgspec.structs.replace(message(n), text=text) for n, text in enumerate(texts)]
    taken = take_that_fit(all_of, room)
    assert taken == all_of[: len(taken)]
    assert utf16_length(join_texts(taken)) <= room or not taken
    if len(taken) < len(all_of):
        assert utf16_length(join_texts(all_of[: len(taken) + 1])) > room


def test_one_always_fits() -> None:
    """A message that is longer than all room is handed out alone, and holds nobody up."""
    long = msgspec.structs.replace(message(1), text="x" * (MAX_CONTEXT_CHARS + 1))
    assert take_that_fit([long, message(2)]) == [long]
    assert take_that_fit([long], MAX_CONTEXT_CHARS - 1) == []
