"""Views of sessions."""

import asyncio

from brimline.inbox import MESSAGE_LIFETIME_S
from brimline.monitor.monitor import Monitor
from brimline.monitor.rules import Rules
from brimline.server.api.views import Views
from brimline.store.base import PutSession
from brimline.store.memory import MemoryStore
from brimline.store.rows import SessionRow


def test_expired_message_is_not_unread() -> None:
    async def unread(later: float) -> int:
        store, now = MemoryStore(), [1.0]
        row = SessionRow("s1", "claude", 1.0)
        monitor = Monitor(store, lambda: now[0])
        await store.write([PutSession(row)])
        await monitor.send("s1", "hello")
        now[0] += later
        return (await Views(store, monitor, Rules()).view(row)).unread

    assert asyncio.run(unread(MESSAGE_LIFETIME_S - 1)) == 1
    assert asyncio.run(unread(MESSAGE_LIFETIME_S)) == 0
