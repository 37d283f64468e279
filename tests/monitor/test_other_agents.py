"""What Codex and Gemini CLI need of the monitor."""

import asyncio
from pathlib import Path

from brimline.handoff.document import Document

from .agent import Agent


def test_warning_waits_over_the_end_of_a_run(tmp_path: Path) -> None:
    """A headless run ends its session; resumed, the agent is told what was waiting."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.tell("started")
        agent.call(110_000)
        await agent.tell("tool")
        await agent.tell("ended")
        await agent.tell("started")
        told = await agent.tell("prompt")
        assert told.context is not None
        assert "at 55%" in told.context

    asyncio.run(go())


def test_document_after_a_compaction_that_no_hook_tells(tmp_path: Path) -> None:
    """It comes back with the next answer, once: also to a monitor that was not there."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.tell("started")
        agent.call(90_000)
        await agent.tell("tool")
        await agent.monitor.hand_over("s1", Document.of("the plan", "/p", 1.0), "the agent")
        agent.boundary()
        agent.call(20_000)
        agent.new_monitor()
        told = await agent.tell("tool")
        assert told.context is not None
        assert "the plan" in told.context
        assert (await agent.tell("tool")).context is None

    asyncio.run(go())


def test_told_figure_that_the_transcript_has_passed(tmp_path: Path) -> None:
    """A figure that the client told is older than a call that the transcript tells since."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(50_000)
        agent.call(50_000)
        await agent.tell("tool")
        agent.call(110_000)
        await agent.tell("tool")
        assert agent.reading()[0] == 110_000

    asyncio.run(go())


def test_subagent_while_the_main_thread_is_compacted(tmp_path: Path) -> None:
    """A subagent's tool does not end the compaction of the thread that it works for."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(110_000)
        await agent.tell("tool")
        await agent.tell("compacting")
        await agent.tell("tool", thread="a1")
        assert agent.reading()[1] == "compacting"

    asyncio.run(go())
