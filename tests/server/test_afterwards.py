"""What a hook brought is taken in when it was answered: together, in the end too, and once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from brimline.observations import Observation
from brimline.server import afterwards
from brimline.server.afterwards import Afterwards
from brimline.store.base import Write
from brimline.store.failures import StoreFailed
from brimline.store.memory import MemoryStore
from monitor.agent import Agent

pytestmark = pytest.mark.usefixtures("compiled")


class Counting(MemoryStore):
    """A store that counts what is written, and may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 0
        self.fails = False

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        """Count it."""
        self.times += 1
        if self.fails:
            raise StoreFailed("brimline.db", "no space left on device", "Free some.")
        return await super().write(writes)


Scene = Callable[[Agent, Counting, Afterwards], Awaitable[None]]


def run(folder: Path, scene: Scene) -> None:
    """Play a scene with an agent of which all is known."""

    async def go() -> None:
        store = Counting()
        agent = Agent(folder, store)
        agent.call(60_000)
        await agent.tell("tool")
        store.times = 0
        later = Afterwards(agent.monitor)
        await scene(agent, store, later)
        await later.close()

    asyncio.run(go())


def brought(agent: Agent, sent: int) -> Observation:
    """A hook that brings a call of which there is nothing to say."""
    agent.call(sent)
    heard = agent.heard("tool")
    assert agent.monitor.glance(heard) == "later"
    return heard


def test_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What several hooks brought is written at once, a moment later."""
    monkeypatch.setattr(afterwards, "LATER", 0.02)

    async def scene(agent: Agent, store: Counting, later: Afterwards) -> None:
        later.hear(brought(agent, 61_000))
        later.hear(brought(agent, 62_000))
        assert (agent.reading()[0], store.times) == (60_000, 0)
        async with asyncio.timeout(20):
            while not store.times:
                await asyncio.sleep(0.001)
        assert (agent.reading()[0], store.times) == (62_000, 1)
        assert [row.input for row in await store.calls("s1")] == [60_000, 61_000, 62_000]
        later.hear(brought(agent, 63_000))
        async with asyncio.timeout(20):
            while store.times < 2:
                await asyncio.sleep(0.001)
        assert agent.reading()[0] == 63_000

    run(tmp_path, scene)


def test_in_the_end(tmp_path: Path) -> None:
    """A daemon that ends takes in what is left."""

    async def scene(agent: Agent, store: Counting, later: Afterwards) -> None:
        later.hear(brought(agent, 61_000))
        await later.close()
        assert (agent.reading()[0], store.times) == (61_000, 1)

    run(tmp_path, scene)


def test_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What could not be kept is said once, and tried again until it is kept."""
    monkeypatch.setattr(afterwards, "LATER", 0.0)
    monkeypatch.setattr(afterwards, "AGAIN", 0.001)

    async def scene(agent: Agent, store: Counting, later: Afterwards) -> None:
        store.fails = True
        later.hear(brought(agent, 61_000))
        async with asyncio.timeout(20):
            while store.times < 3:
                await asyncio.sleep(0.001)
            store.fails = False
            while len(await store.calls("s1")) < 2:
                await asyncio.sleep(0.001)
        assert [row.input for row in await store.calls("s1")] == [60_000, 61_000]
        assert [record.message.partition(":")[0] for record in caplog.records] == [
            "what a hook of claude brought was not kept"
        ]

    run(tmp_path, scene)
