"""A clock that is set back: what was told, handed out and written stays in its order."""

import asyncio
from pathlib import Path

import pytest

from brimline.handoff import Document
from brimline.inbox import DELIVERY_LEASE_S
from brimline.monitor.hook_reply import SENT_AGAIN

from .agent import Agent

HOUR = 3_600.0


def begun(folder: Path) -> Agent:
    """A session, at a time from which there is room to go back."""
    agent = Agent(folder)
    agent.time = 1_000_000.0
    return agent


def test_compaction_after_a_status_line(tmp_path: Path) -> None:
    """What was told before a compaction is not held after it, whatever the clock said."""

    async def go() -> None:
        agent = begun(tmp_path)
        agent.call(40_000)
        await agent.status(40_000)
        agent.time -= HOUR
        agent.boundary()
        await agent.tell("compacted")
        assert agent.reading() == (None, "unknown", 1)

    asyncio.run(go())


def test_status_line(tmp_path: Path) -> None:
    """A status line is believed after the clock was set back; one that was overtaken is not."""

    async def go() -> None:
        agent = begun(tmp_path)
        await agent.status(40_000)
        agent.time -= 3.0
        await agent.status(30_000)
        assert agent.reading()[0] == 40_000
        agent.time -= HOUR
        await agent.status(50_000)
        assert agent.reading()[0] == 50_000

    asyncio.run(go())


@pytest.mark.parametrize("restarts", [False, True])
def test_document(tmp_path: Path, restarts: bool) -> None:
    """A document that was written before a compaction comes back after it."""

    async def go() -> None:
        agent = begun(tmp_path)
        agent.call(40_000)
        await agent.tell("tool")
        await agent.monitor.hand_over("s1", Document.of("Go on.", "h.md", 1.0), "agent")
        agent.time -= HOUR
        agent.boundary()
        if restarts:
            await agent.monitor.observe(agent.heard("compacted"))
            agent.new_monitor()
        reply = await agent.tell("prompt" if restarts else "compacted")
        assert "Go on." in (reply.context or "")

    asyncio.run(go())


def test_message_of_a_hook_that_vanished(tmp_path: Path) -> None:
    """A message that was handed to a hook that vanished does not wait for the clock."""

    async def go() -> None:
        agent = begun(tmp_path)
        await agent.tell("prompt")
        await agent.monitor.send("s1", "hello")
        handed = await agent.monitor.observe(agent.heard("prompt"))
        assert handed.context == "hello"
        agent.time += DELIVERY_LEASE_S / 2
        assert (await agent.tell("prompt")).context is None
        agent.time -= HOUR
        assert (await agent.tell("prompt")).context == f"{SENT_AGAIN}\nhello"

    asyncio.run(go())
