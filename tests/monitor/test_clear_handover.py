"""Messages follow a session that continues under another id after a clear."""

from brimline.context.inbox import DELIVERY_LEASE_S, Message, MessageState, Urgency
from brimline.monitor.handoffs import forward_messages, record_continuation
from brimline.store.base import PutSession, QueueMessage, Store
from brimline.store.rows import SessionRow
from brimline.store.sqlite import MemoryStore


def message(
    id: str,
    session: str = "s1",
    urgency: Urgency = "sequential",
    state: MessageState = "queued",
    handed_at: float | None = None,
) -> Message:
    return Message(
        id, session, id, 1.0, urgency=urgency, sender="user", state=state, handed_at=handed_at
    )


async def pending_messages(store: Store) -> list[tuple[str, str]]:
    """Return (session, message id) of all pending messages."""
    return [(row.session, row.id) for row in await store.pending_messages()]


async def test_forwarding_moves_messages_once_and_in_order_but_not_levels() -> None:
    store = MemoryStore()
    level = Message("level", "s1", "50%", 1.0, cycle=0, level=50.0)
    queued = message("m1"), level, message("m2", urgency="urgent"), message("m4", "s3")
    await store.write([*map(QueueMessage, queued)])
    for _ in range(2):
        await forward_messages(store, "s1", "s2", 2.0)
        moved = [("s2", "m1"), ("s1", "level"), ("s2", "m2"), ("s3", "m4")]
        assert await pending_messages(store) == moved


async def test_message_held_by_a_hook_is_forwarded_only_after_its_lease() -> None:
    store = MemoryStore()
    await store.write([QueueMessage(message("m1", state="handed", handed_at=5.0))])
    await forward_messages(store, "s1", "s2", 6.0)
    assert await pending_messages(store) == [("s1", "m1")]
    await forward_messages(store, "s1", "s2", 5.0 + DELIVERY_LEASE_S)
    assert await pending_messages(store) == [("s2", "m1")]
    assert [row.state for row in await store.messages()] == ["queued"]


async def test_repeated_continuation_does_not_move_messages_of_a_resumed_session() -> None:
    store = MemoryStore()
    await store.write([PutSession(SessionRow("s1", "claude", 4.0)), QueueMessage(message("m1"))])
    for _ in range(2):
        await record_continuation(store, "s1", "s2", 3.0, 5.0)
        row = SessionRow("s1", "claude", 4.0, became="s2", became_at=4.0)
        assert await store.session("s1") == row
        assert row.continued_as == "s2"
    assert await pending_messages(store) == [("s2", "m1")]
    await store.write([PutSession(SessionRow("s1", "claude", 6.0)), QueueMessage(message("m2"))])
    await record_continuation(store, "s1", "s2", 3.0, 7.0)
    assert await pending_messages(store) == [("s2", "m1"), ("s1", "m2")]
    await record_continuation(store, "s1", "s3", 8.0, 8.0)
    assert await pending_messages(store) == [("s2", "m1"), ("s3", "m2")]


def test_session_seen_after_its_clear_has_no_continuation() -> None:
    cleared = SessionRow("s1", "claude", 3.0, ended_at=3.0, became="s2", became_at=3.0)
    assert cleared.continued_as == "s2"
    assert SessionRow("s1", "claude", 3.0).continued_as is None
    resumed = SessionRow("s1", "claude", 9.0, ended_at=9.0, became="s2", became_at=3.0)
    assert resumed.continued_as is None


async def test_messages_of_an_unknown_session_are_forwarded_without_creating_it() -> None:
    store = MemoryStore()
    await store.write([QueueMessage(message("m1"))])
    await record_continuation(store, "s1", "s2", 3.0, 3.0)
    assert await store.sessions() == []
    assert await pending_messages(store) == [("s2", "m1")]


async def test_clear_within_one_session_id_changes_nothing() -> None:
    store = MemoryStore()
    row = SessionRow("s1", "claude", 1.0)
    await store.write([PutSession(row), QueueMessage(message("m1"))])
    await record_continuation(store, "s1", "s1", 3.0, 3.0)
    assert await store.session("s1") == row
    assert await pending_messages(store) == [("s1", "m1")]
