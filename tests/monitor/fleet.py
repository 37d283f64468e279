"""Several monitors on one store, and the store that records what they write."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any

from msgspec.structs import replace

from brimline.agents.observations import Observation, Reply
from brimline.context.events import AnyEvent, Call
from brimline.context.inbox import Message
from brimline.context.usage import Usage
from brimline.monitor.monitor import Monitor
from brimline.monitor.user_rules import Rules
from brimline.store.base import Write
from brimline.store.sqlite import MemoryStore

from .agent import MODEL, RecordingEnvironment


class RecordingStore(MemoryStore):
    """Records what is written; the test can let something happen before a write or after a read."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Write] = []
        self.before_write: list[Callable[[], Awaitable[object]]] = []
        self.after_read: list[Callable[[], Awaitable[object]]] = []

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        if self.before_write:
            await self.before_write.pop()()
        self.written += writes
        return await super().write(writes)

    async def pending_messages(self, session: str | None = None) -> list[Message]:
        messages = await super().pending_messages(session)
        if self.after_read:
            await self.after_read.pop()()
        return messages


class Fleet:
    """Monitors that share a store, and a session whose calls any of them may get."""

    def __init__(self, monitors: int, shared: bool = True, **rules: Any) -> None:
        self.store = RecordingStore()
        self.time = 1_000.0
        self.environment = RecordingEnvironment()
        self.monitors = [
            Monitor(
                self.store,
                lambda: self.time,
                Rules(of="window", **rules),
                self.environment,
                shared=shared,
            )
            for _ in range(monitors)
        ]
        self._numbers = count(1)

    def observation(self, event: AnyEvent) -> Observation:
        self.time += 1
        return Observation(
            f"e{next(self._numbers)}", "my-agent", "s", "pushed", self.time, events=(event,)
        )

    async def push(self, monitor: int, *events: AnyEvent) -> list[Reply]:
        observed = map(self.observation, events)
        return [await self.monitors[monitor].observe(each) for each in observed]

    async def rows(self) -> list[object]:
        """Everything that is stored of the session, but its host."""
        row = await self.store.session("s")
        return [
            row and replace(row, host=None),
            await self.store.threads("s"),
            await self.store.calls("s"),
            await self.store.compactions("s"),
            await self.store.signals("s"),
            [(message.text, message.state) for message in await self.store.messages("s")],
        ]


def call(number: int, sent: int = 50_000) -> Call:
    return Call(id=f"c{number}", usage=Usage(sent, 0, 0, 5), model=MODEL, at=float(number))
