"""Sessions that go on as others: what waits for them follows, once."""

import asyncio

from brimline.inbox import Message, Urgency
from brimline.monitor.succession import forward, go_on
from brimline.store.base import PutSession, Queue
from brimline.store.memory import MemoryStore
from brimline.store.rows import SessionRow


def message(id: str, session: str = "s1", urgency: Urgency = "sequential") -> Message:
    """A message from the user."""
    return Message(id, session, id, 1.0, urgency=urgency, sender="user")


def test_forwarded() -> None:
    """What waits for a session waits for the one that it became, in its order, and only there."""

    async def main() -> None:
        store = MemoryStore()
        level = Message("level", "s1", "50%", 1.0, cycle=0, level=50.0)
        waiting = message("m1"), message("m2", urgency="urgent"), level, message("m4", "s3")
        await store.write([*map(Queue, waiting)])
        for _ in range(2):
            await forward(store, "s1", "s2", 2.0)
            found = [(m.text, m.urgency) for m in await store.waiting("s2")]
            assert found == [("m1", "sequential"), ("m2", "urgent")]
            assert [m.id for m in await store.waiting("s1")] == ["level"]

    asyncio.run(main())


def test_goes_on() -> None:
    """It has ended, and it is known as what it goes on."""

    async def main() -> None:
        store = MemoryStore()
        await store.write([PutSession(SessionRow("s1", "claude", 1.0)), Queue(message("m1"))])
        await go_on(store, "s1", "s2", 3.0)
        ended = SessionRow("s1", "claude", 3.0, ended_at=3.0, became="s2")
        assert await store.session("s1") == ended
        assert ended.has_ended
        assert [m.session for m in await store.waiting()] == ["s2"]

    asyncio.run(main())


def test_session_that_was_not_heard_of() -> None:
    """Its messages follow all the same; nobody makes up a session for them."""

    async def main() -> None:
        store = MemoryStore()
        await store.write([Queue(message("m1"))])
        await go_on(store, "s1", "s2", 3.0)
        assert await store.sessions() == []
        assert [m.session for m in await store.waiting()] == ["s2"]

    asyncio.run(main())


def test_client_that_keeps_its_session() -> None:
    """A clear that makes no other session changes nothing."""

    async def main() -> None:
        store = MemoryStore()
        row = SessionRow("s1", "claude", 1.0)
        await store.write([PutSession(row), Queue(message("m1"))])
        await go_on(store, "s1", "s1", 3.0)
        assert await store.session("s1") == row
        assert [m.id for m in await store.waiting("s1")] == ["m1"]

    asyncio.run(main())
