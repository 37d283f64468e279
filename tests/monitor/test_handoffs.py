"""What a session gets back of a compaction that only its transcript told of."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from brimline.handoff.document import Document
from brimline.observations import ObservationKind

from .agent import Agent


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine."""
    asyncio.run(work)


def begun(folder: Path) -> Agent:
    """A session with a task."""
    agent = Agent(folder)
    works(agent, "Build the parser.")
    return agent


def works(agent: Agent, task: str, calls: int = 1) -> None:
    """The user asks for something, and the agent works on it."""
    at, told = "2026-11-15T10:00:00.000Z", {"role": "user", "content": task}
    agent.line(type="user", timestamp=at, message=told)
    for _ in range(calls):
        agent.call(90_000)


def test_draft_after_the_fact(tmp_path: Path) -> None:
    """Where nobody told of a compaction before it was over, the draft is made then, once."""

    async def go() -> None:
        agent = begun(tmp_path)
        await agent.tell("tool")
        agent.boundary()
        agent.call(20_000)
        told = (await agent.tell("tool")).context or ""
        assert "> Build the parser." in told
        assert "0 calls before the compaction" in told
        assert (await agent.tell("prompt")).context is None
        assert [(row.draft, row.cycle) for row in await agent.store.handoffs("s1")] == [(True, 0)]

    run(go())


def test_draft_before_the_fact(tmp_path: Path) -> None:
    """What was drafted as the compaction began is not drafted again when it is seen."""

    async def go() -> None:
        agent = begun(tmp_path)
        await agent.tell("tool")
        await agent.tell("compacting")
        agent.boundary()
        agent.call(20_000)
        assert "> Build the parser." in ((await agent.tell("tool")).context or "")
        assert len(await agent.store.handoffs("s1")) == 1

    run(go())


@pytest.mark.parametrize("what", ["tool", "compacting"])
def test_draft_of_a_compaction_before(tmp_path: Path, what: ObservationKind) -> None:
    """What was drafted for a compaction that nobody was told of after it, or that was called off,
    does not do for a later one."""

    async def go() -> None:
        agent = begun(tmp_path)
        await agent.tell("tool")
        if what == "tool":
            agent.boundary()
            agent.call(20_000)
            await agent.tell("wrote")
        else:
            await agent.tell(what)
        while not await agent.store.handoffs("s1"):
            await asyncio.sleep(0.01)
        works(agent, "And the lexer.", calls=3)
        await agent.tell("wrote")
        agent.boundary()
        agent.call(20_000)
        assert "And the lexer." in ((await agent.tell("tool")).context or "")

    run(go())


def test_calls_until_the_compaction(tmp_path: Path) -> None:
    """The calls are counted from the document to the compaction, not to when it is brought back."""

    async def go() -> None:
        agent = begun(tmp_path)
        await agent.tell("tool")
        document = Document.of("Next: the lexer.", "/project/handoff.md", agent.time)
        await agent.monitor.hand_over("s1", document, "agent")
        for sent in (91_000, 92_000):
            agent.call(sent)
        agent.boundary()
        for sent in (20_000, 21_000, 22_000):
            agent.call(sent)
        told = (await agent.tell("tool")).context or ""
        assert "Next: the lexer." in told
        assert "2 calls before the compaction" in told

    run(go())


def test_compaction_that_its_file_ended(tmp_path: Path) -> None:
    """A status line without a figure is no sign that a compaction goes on, where its file tells of
    a call after it."""

    async def go() -> None:
        agent = begun(tmp_path)
        await agent.tell("compacting")
        agent.boundary()
        agent.call(120_000)
        await agent.tell("status", usage=None)
        assert agent.reading() == (120_000, "measured", 1)

    run(go())
