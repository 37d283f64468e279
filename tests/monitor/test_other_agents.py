"""Cases of the monitor that only Codex and Gemini CLI produce."""

from pathlib import Path

from brimline.handoff.document import Document

from .agent import Agent


async def test_pending_warning_survives_the_end_and_resume_of_a_session(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.observe("started")
    agent.call(110_000)
    await agent.observe("wrote")
    await agent.observe("ended")
    await agent.observe("started")
    reply = await agent.observe("prompt")
    assert reply.context is not None
    assert "at 55%" in reply.context


async def test_handoff_is_returned_once_after_an_unannounced_compaction_and_restart(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    await agent.observe("started")
    agent.call(90_000)
    await agent.observe("tool")
    await agent.monitor.hand_over("s1", Document.of("the plan", "/p", 1.0), "the agent")
    agent.boundary()
    agent.call(20_000)
    agent.new_monitor()
    reply = await agent.observe("tool")
    assert reply.context is not None
    assert "the plan" in reply.context
    assert (await agent.observe("tool")).context is None


async def test_newer_call_in_the_transcript_overrides_the_status_line(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.status(50_000)
    agent.call(50_000)
    await agent.observe("tool")
    agent.call(110_000)
    await agent.observe("tool")
    assert agent.reading()[0] == 110_000


async def test_tool_of_a_subagent_does_not_end_a_compaction_of_the_main_thread(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    agent.call(110_000)
    await agent.observe("tool")
    await agent.observe("compacting")
    await agent.observe("tool", thread="a1")
    assert agent.reading()[1] == "compacting"
