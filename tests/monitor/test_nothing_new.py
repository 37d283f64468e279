"""A hook that brings nothing new writes nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from brimline.handoff.document import Document
from brimline.monitor.persistence import SEEN_EVERY_S
from brimline.observations import Pane
from brimline.store.base import Write
from brimline.store.memory import MemoryStore

from .agent import Agent

Change = Callable[[Agent], Awaitable[object]]


class Counted(MemoryStore):
    """A store that counts its writes."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        """Count it."""
        self.writes += 1
        return await super().write(writes)


async def at_rest(folder: Path) -> tuple[Agent, Counted]:
    """An agent of which all is known."""
    store = Counted()
    agent = Agent(folder, store)
    agent.call(60_000)
    await agent.tell("tool", model="m", pane=Pane("/tmp/t", "%1"), env=(("A", "1"),))
    store.writes = 0
    return agent, store


def test_nothing_is_written_when_nothing_changed(tmp_path: Path) -> None:
    """A hook of a session whose state is stored writes nothing, whichever hook it is."""

    async def go() -> None:
        agent, store = await at_rest(tmp_path)
        await agent.tell("tool")
        await agent.tell("prompt", model="m")
        await agent.tell("stopped", pane=Pane("/tmp/t", "%1"), env=(("A", "1"),))
        assert store.writes == 0
        assert agent.reading() == (60_000, "measured", 0)

    asyncio.run(go())


def test_nothing_is_written_between_status_lines(tmp_path: Path) -> None:
    """A status line that repeats its figures does not make the next hook write."""

    async def go() -> None:
        agent, store = await at_rest(tmp_path)
        await agent.status(60_000)
        await agent.tell("tool")
        store.writes = 0
        await agent.status(60_000)
        await agent.tell("tool")
        assert store.writes == 0

    asyncio.run(go())


async def another_call(agent: Agent) -> None:
    """The file has grown."""
    agent.call(61_000)
    await agent.tell("tool")
    assert agent.reading() == (61_000, "measured", 0)


async def a_message(agent: Agent) -> None:
    """Somebody sends one."""
    await agent.monitor.send("s1", "look here", "urgent")
    assert (await agent.tell("tool")).context == "look here"


async def a_message_that_was_lost(agent: Agent) -> None:
    """One that a hook did not pass on."""
    await agent.monitor.send("s1", "look here", "urgent")
    await agent.monitor.requeue(await agent.monitor.observe(agent.heard("tool")))
    assert (await agent.tell("tool")).context == "look here"


async def later(agent: Agent) -> None:
    """It is kept from time to time that it lives."""
    agent.time += SEEN_EVERY_S
    await agent.tell("tool")
    (row,) = await agent.store.sessions()
    assert row.seen_at == agent.time


async def a_compaction(agent: Agent) -> None:
    """It is told as ever, and so is its end, and a hook after that."""
    await agent.monitor.hand_over("s1", Document.of("all of it", "/d", 0.0), "claude")
    await agent.tell("compacting")
    assert agent.reading()[1] == "compacting"
    await agent.tell("tool")
    assert agent.reading()[1] == "measured"
    agent.boundary()
    assert "all of it" in ((await agent.tell("prompt")).context or "")


async def an_end(agent: Agent) -> None:
    """One that ended lives again."""
    await agent.tell("ended")
    await agent.tell("prompt")
    watched = agent.monitor.state_of("s1")
    assert watched is not None
    assert watched.ended_at is None


async def a_parent(agent: Agent) -> None:
    """Another session may be told who is its parent."""
    agent.parent = "p"
    await agent.tell("tool")
    (row,) = await agent.store.sessions()
    assert row.parent == "p"


def also(**more: object) -> Change:
    """Something else is told of it."""
    return lambda agent: agent.tell("tool", **more)


async def another_file(agent: Agent) -> None:
    """Its transcript is another."""
    agent.path = agent.path.with_name("other.jsonl")
    agent.call(70_000)
    await agent.tell("tool")
    assert agent.reading() == (70_000, "measured", 0)


CHANGES: dict[str, Change] = {
    "another call": another_call,
    "a message": a_message,
    "a message that was lost": a_message_that_was_lost,
    "later": later,
    "a compaction": a_compaction,
    "an end": an_end,
    "a parent": a_parent,
    "a host": also(host="h"),
    "another file": another_file,
}


@pytest.mark.parametrize("name", CHANGES)
def test_change_is_written(tmp_path: Path, name: str) -> None:
    """Whatever changed is written."""

    async def go() -> None:
        agent, store = await at_rest(tmp_path)
        await CHANGES[name](agent)
        assert store.writes > 0

    asyncio.run(go())


@pytest.mark.parametrize("more", [{"pane": Pane("/tmp/t", "%2")}, {"env": (("A", "2"),)}])
def test_kept_in_mind(tmp_path: Path, more: dict[str, object]) -> None:
    """What is in no row is known all the same."""

    async def go() -> None:
        agent, _ = await at_rest(tmp_path)
        await agent.tell("tool", **more)
        watched = agent.monitor.state_of("s1")
        assert watched is not None
        assert (watched.pane == Pane("/tmp/t", "%2")) == ("pane" in more)
        assert (watched.env == (("A", "2"),)) == ("env" in more)

    asyncio.run(go())
