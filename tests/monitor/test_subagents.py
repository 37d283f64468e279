"""Subagents: they are told while they work, and nothing waits for them for ever."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.events import Call
from brimline.usage import Usage

from .agent import MODEL, Agent

SUBAGENT = "a1"


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine."""
    asyncio.run(work)


async def called(agent: Agent, sent: int, of: str = "claude") -> None:
    """A subagent of a session made a call."""
    call = Call(id=f"c{sent}", usage=Usage(sent, 0, 0, 1), model=MODEL, thread=SUBAGENT)
    heard = agent.heard("pushed", events=(call,))
    await agent.monitor.observe(msgspec.structs.replace(heard, agent=of, transcript=None))


async def states(agent: Agent) -> list[str]:
    """What became of the session's messages."""
    return [message.state for message in await agent.store.messages("s1")]


def test_end(tmp_path: Path) -> None:
    """What a subagent was to be told is cancelled when it ends; the session lives."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await called(agent, 140_000)
        assert await states(agent) == ["queued"]
        await agent.tell("ended", thread=SUBAGENT)
        assert await states(agent) == ["cancelled"]
        row = await agent.store.session("s1")
        assert row is not None
        assert row.ended_at is None

    run(go())


def test_end_that_tells_of_the_level(tmp_path: Path) -> None:
    """So it is where its last call is known only then; other messages wait on."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.monitor.send("s1", "hello")
        call = Call(id="last", usage=Usage(140_000, 0, 0, 1), model=MODEL, thread=SUBAGENT)
        await agent.tell("ended", thread=SUBAGENT, events=(call,))
        assert sorted(await states(agent)) == ["cancelled", "queued"]
        assert [signal.level for signal in agent.around.signals] == [65.0]

    run(go())


def test_end_after_the_sessions(tmp_path: Path) -> None:
    """A subagent that ends after its session does not bring that to life again."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await called(agent, 20_000)
        await agent.tell("ended")
        await agent.tell("ended", thread=SUBAGENT)
        row = await agent.store.session("s1")
        assert row is not None
        assert row.ended_at is not None

    run(go())


@pytest.mark.parametrize("of", ["codex", "gemini", "opencode"])
def test_subagents_without_hooks(tmp_path: Path, of: str) -> None:
    """Where no hook could tell a subagent, nothing is queued for it; the level is a signal."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await called(agent, 900_000, of)
        assert await states(agent) == []
        assert [signal.thread for signal in agent.around.signals] == [SUBAGENT]

    run(go())
