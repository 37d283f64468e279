"""Messages: when and in which order they are handed out."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.inbox import (
    DELIVERY_LEASE_S,
    MAX_CONTEXT_CHARS,
    Message,
    Moment,
    deliverable,
    is_pending,
    join_texts,
    sign_text,
    take_that_fit,
    utf16_length,
    with_expiry,
)


def message(order: int = 0, **more: Any) -> Message:
    return Message(f"m{order}", "s", f"text {order}", at=0.0, order=order, **more)


def test_urgent_messages_come_first_and_each_kind_keeps_its_order() -> None:
    waiting = [
        message(3),
        message(1),
        message(4, urgency="urgent"),
        message(2, urgency="urgent"),
    ]
    assert [m.order for m in deliverable(waiting, "turn", now=1.0)] == [2, 4, 1, 3]


def test_only_urgent_messages_and_levels_come_with_a_tool_result() -> None:
    waiting = [message(1), message(2, urgency="urgent"), message(3, level=50.0)]
    assert [m.order for m in deliverable(waiting, "tool", now=1.0)] == [2, 3]


def test_only_messages_that_ask_for_it_keep_a_turn_going() -> None:
    """Others wait for the next prompt or tool result, whoever sent them and however urgent."""
    waiting = [
        message(1, level=65.0),
        message(2, sender="user", urgency="urgent"),
        message(3, sender="user", blocks_stop=True),
    ]
    assert [m.order for m in deliverable(waiting, "stop", now=1.0)] == [3]


@pytest.mark.parametrize("moment", ["turn", "tool", "stop"])
def test_nothing_is_delivered_during_a_compaction(moment: Moment) -> None:
    assert deliverable([message(urgency="urgent")], moment, now=1.0, compacting=True) == []


def test_each_thread_gets_only_its_own_messages() -> None:
    waiting = [message(1), message(2, thread="main"), message(3, thread="agent-1")]
    assert [m.order for m in deliverable(waiting, "turn", now=1.0)] == [1, 2]
    assert [m.order for m in deliverable(waiting, "turn", now=1.0, thread="agent-1")] == [3]


def test_expired_message_is_not_handed_out() -> None:
    assert is_pending(message(expires=10.0), now=9.9)
    assert not is_pending(message(expires=10.0), now=10.0)


@pytest.mark.parametrize("state", ["delivered", "cancelled", "expired"])
def test_delivered_cancelled_or_expired_messages_are_not_handed_out_again(state: Any) -> None:
    """Also long after the lease under which they were handed out."""
    over = message(state=state, handed_at=1.0)
    assert not is_pending(over, now=2.0)
    assert not is_pending(over, now=1.0 + 10 * DELIVERY_LEASE_S)


def test_unacknowledged_message_is_handed_out_again_after_its_lease() -> None:
    handed = message(state="handed", handed_at=100.0)
    assert not is_pending(handed, now=100.0 + DELIVERY_LEASE_S - 1)
    assert is_pending(handed, now=100.0 + DELIVERY_LEASE_S)
    assert not is_pending(handed, now=99.0), "a clock that is a little behind"
    assert is_pending(msgspec.structs.replace(handed, handed_at=None), now=100.0)


def test_batch_is_one_text() -> None:
    assert join_texts([message(1), message(2)]) == "text 1\n\ntext 2"
    assert join_texts([]) == ""


def test_message_names_its_sender() -> None:
    assert sign_text(" text 1\n", "user") == "[message from user] text 1"
    assert sign_text("text 1", "a\nb" + "x" * 200) == f"[message from a b{'x' * 77}] text 1"


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["queued", "delivered"])), max_size=12))
def test_every_queued_message_is_handed_out_once(steps: list[tuple[bool, Any]]) -> None:
    waiting = [
        message(place, urgency="urgent" if urgent else "sequential", state=state)
        for place, (urgent, state) in enumerate(steps)
    ]
    batch = deliverable(waiting, "turn", now=1.0)
    assert sorted(m.order for m in batch) == [m.order for m in waiting if m.state == "queued"]


def test_undelivered_message_expires_and_others_keep_their_state() -> None:
    assert with_expiry(message(expires=10.0), 10.0).state == "expired"
    assert with_expiry(message(expires=10.0, state="handed"), 10.0).state == "expired"
    assert with_expiry(message(expires=10.0), 9.0).state == "queued"
    assert with_expiry(message(expires=10.0, state="delivered"), 11.0).state == "delivered"


def test_length_counts_utf_16_units() -> None:
    assert utf16_length("a😀ü\uffff") == 5


@given(st.lists(st.text(min_size=1, max_size=40), max_size=12), st.integers(0, 200))
def test_messages_are_taken_while_they_fit(texts: list[str], room: int) -> None:
    all_of = [msgspec.structs.replace(message(n), text=text) for n, text in enumerate(texts)]
    fitting = take_that_fit(all_of, room)
    assert fitting == all_of[: len(fitting)]
    assert utf16_length(join_texts(fitting)) <= room or not fitting
    if len(fitting) < len(all_of):
        assert utf16_length(join_texts(all_of[: len(fitting) + 1])) > room


def test_message_that_fills_the_room_is_taken() -> None:
    both = [message(1), message(2)]
    room = utf16_length(join_texts(both))
    assert (take_that_fit(both, room), take_that_fit(both, room - 1)) == (both, both[:1])


def test_message_longer_than_the_room_is_handed_out_alone() -> None:
    long = msgspec.structs.replace(message(1), text="x" * (MAX_CONTEXT_CHARS + 1))
    assert take_that_fit([long, message(2)]) == [long]
    assert take_that_fit([long], MAX_CONTEXT_CHARS - 1) == []
