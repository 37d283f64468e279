"""Sessions that go on as others: what waits for them follows, once."""

import asyncio

from brimline.inbox import DELIVERY_LEASE_S, Message, MessageState, Urgency
from brimline.monitor.clear_handover import forward_messages, record_continuation
from brimline.store.base import PutSession, QueueMessage, Store
from brimline.store.memory import MemoryStore
from brimline.store.rows import SessionRow


def message(
    id: str,
    session: str = "s1",
    urgency: Urgency = "sequential",
    state: MessageState = "queued",
    handed_at: float | None = None,
) -> Message:
    """A message from the user."""
    return Message(
        id, session, id, 1.0, urgency=urgency, sender="user", state=state, handed_at=handed_at
    )


async def waiting(store: Store) -> list[tuple[str, str]]:
    """Who has what to read."""
    return [(row.session, row.id) for row in await store.pending_messages()]


def test_forwarded() -> None:
    """What waits for a session waits for the one that it became, in its order, and only there."""

    async def main() -> None:
        store = MemoryStore()
        level = Message("level", "s1", "50%", 1.0, cycle=0, level=50.0)
        queued = message("m1"), level, message("m2", urgency="urgent"), message("m4", "s3")
        await store.write([*map(QueueMessage, queued)])
        for _ in range(2):
            await forward_messages(store, "s1", "s2", 2.0)
            moved = [("s2", "m1"), ("s1", "level"), ("s2", "m2"), ("s3", "m4")]
            assert await waiting(store) == moved

    asyncio.run(main())


def test_handed_out() -> None:
    """What a hook was given may still be passed on: it follows when that has taken too long."""

    async def main() -> None:
        store = MemoryStore()
        await store.write([QueueMessage(message("m1", state="handed", handed_at=5.0))])
        await forward_messages(store, "s1", "s2", 6.0)
        assert await waiting(store) == [("s1", "m1")]
        await forward_messages(store, "s1", "s2", 5.0 + DELIVERY_LEASE_S)
        assert await waiting(store) == [("s2", "m1")]
        assert [row.state for row in await store.messages()] == ["queued"]

    asyncio.run(main())


def test_succeeds() -> None:
    """It is known as what it goes on; what is told again, when it was resumed, is long past."""

    async def main() -> None:
        store = MemoryStore()
        await store.write(
            [PutSession(SessionRow("s1", "claude", 4.0)), QueueMessage(message("m1"))]
        )
        for _ in range(2):
            await record_continuation(store, "s1", "s2", 3.0, 5.0)
            row = SessionRow("s1", "claude", 4.0, became="s2", became_at=4.0)
            assert await store.session("s1") == row
            assert row.continued_as == "s2"
        assert await waiting(store) == [("s2", "m1")]
        await store.write(
            [PutSession(SessionRow("s1", "claude", 6.0)), QueueMessage(message("m2"))]
        )
        await record_continuation(store, "s1", "s2", 3.0, 7.0)
        assert await waiting(store) == [("s2", "m1"), ("s1", "m2")]
        await record_continuation(store, "s1", "s3", 8.0, 8.0)
        assert await waiting(store) == [("s2", "m1"), ("s3", "m2")]

    asyncio.run(main())


def test_heir() -> None:
    """A session that was seen after its clear was resumed, however it ended then."""
    cleared = SessionRow("s1", "claude", 3.0, ended_at=3.0, became="s2", became_at=3.0)
    assert cleared.continued_as == "s2"
    assert SessionRow("s1", "claude", 3.0).continued_as is None
    resumed = SessionRow("s1", "claude", 9.0, ended_at=9.0, became="s2", became_at=3.0)
    assert resumed.continued_as is None


def test_session_that_was_not_heard_of() -> None:
    """Its messages follow all the same; nobody makes up a session for them."""

    async def main() -> None:
        store = MemoryStore()
        await store.write([QueueMessage(message("m1"))])
        await record_continuation(store, "s1", "s2", 3.0, 3.0)
        assert await store.sessions() == []
        assert await waiting(store) == [("s2", "m1")]

    asyncio.run(main())


def test_client_that_keeps_its_session() -> None:
    """A clear that makes no other session changes nothing."""

    async def main() -> None:
        store = MemoryStore()
        row = SessionRow("s1", "claude", 1.0)
        await store.write([PutSession(row), QueueMessage(message("m1"))])
        await record_continuation(store, "s1", "s1", 3.0, 3.0)
        assert await store.session("s1") == row
        assert await waiting(store) == [("s1", "m1")]

    asyncio.run(main())
