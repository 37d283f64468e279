"""Handoffs and drafts that are returned after compactions known only from the transcript."""

import asyncio
from pathlib import Path

import pytest

from brimline.agents.observations import ObservationKind
from brimline.context.inbox import utf16_length
from brimline.handoff.document import Document
from brimline.monitor import handoffs

from .agent import Agent


@pytest.fixture(autouse=True)
def wait_for_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hooks wait until a draft is ready, however busy the machine is."""
    monkeypatch.setattr(handoffs, "READY_WAIT_S", 10.0)


def start_agent(folder: Path) -> Agent:
    agent = Agent(folder)
    work_on(agent, "Build the parser.")
    return agent


def work_on(agent: Agent, task: str, calls: int = 1) -> None:
    """The user gives a task, and the agent makes calls for it."""
    at, message = "2026-11-15T10:00:00.000Z", {"role": "user", "content": task}
    agent.write_record(type="user", timestamp=at, message=message)
    for _ in range(calls):
        agent.call(90_000)


async def test_draft_is_made_once_for_a_compaction_that_no_hook_announced(tmp_path: Path) -> None:
    agent = start_agent(tmp_path)
    await agent.observe("tool")
    agent.boundary()
    agent.call(20_000)
    context = (await agent.observe("tool")).context or ""
    assert "> Build the parser." in context
    assert "0 calls before the compaction" in context
    assert (await agent.observe("prompt")).context is None
    assert [(row.draft, row.cycle) for row in await agent.store.handoffs("s1")] == [(True, 0)]


async def test_announced_compaction_is_drafted_once(tmp_path: Path) -> None:
    agent = start_agent(tmp_path)
    await agent.observe("tool")
    await agent.observe("compacting")
    agent.boundary()
    agent.call(20_000)
    assert "> Build the parser." in ((await agent.observe("tool")).context or "")
    assert len(await agent.store.handoffs("s1")) == 1


@pytest.mark.parametrize("what", ["tool", "compacting"])
async def test_draft_of_an_earlier_compaction_is_not_returned_after_a_later_one(
    tmp_path: Path, what: ObservationKind
) -> None:
    """Neither of one that no hook reported, nor of one that was called off."""
    agent = start_agent(tmp_path)
    await agent.observe("tool")
    if what == "tool":
        agent.boundary()
        agent.call(20_000)
        await agent.observe("wrote")
    else:
        await agent.observe(what)
    while not await agent.store.handoffs("s1"):
        await asyncio.sleep(0.01)
    work_on(agent, "And the lexer.", calls=3)
    await agent.observe("wrote")
    agent.boundary()
    agent.call(20_000)
    assert "And the lexer." in ((await agent.observe("tool")).context or "")


async def test_handoff_age_counts_calls_up_to_the_compaction(tmp_path: Path) -> None:
    agent = start_agent(tmp_path)
    await agent.observe("tool")
    document = Document.of("Next: the lexer.", "/project/handoff.md", agent.time)
    await agent.monitor.hand_over("s1", document, "agent")
    for sent in (91_000, 92_000):
        agent.call(sent)
    agent.boundary()
    for sent in (20_000, 21_000, 22_000):
        agent.call(sent)
    context = (await agent.observe("tool")).context or ""
    assert "Next: the lexer." in context
    assert "2 calls before the compaction" in context


async def test_status_line_without_usage_does_not_prolong_a_compaction(tmp_path: Path) -> None:
    agent = start_agent(tmp_path)
    await agent.observe("compacting")
    agent.boundary()
    agent.call(120_000)
    await agent.observe("status", usage=None)
    assert agent.reading() == (120_000, "measured", 1)


async def test_prompt_that_triggers_a_compaction_is_in_the_draft(tmp_path: Path) -> None:
    """Its hook comes before the client writes it into the transcript."""
    agent = Agent(tmp_path)
    agent.write_record(type="user", message={"content": "Fix the parser."})
    agent.call(150_000)
    await agent.observe("prompt", prompt="Never touch the README.")
    await agent.observe("compacting")
    context = (await agent.observe("compacted")).context or ""
    assert "## Current request\n> Never touch the README.\n" in context
    assert "- Fix the parser.\n" in context


async def test_draft_has_no_more_characters_than_the_user_set(tmp_path: Path) -> None:
    agent = Agent(tmp_path, draft_chars=3_000)
    for number in range(99):
        text = f"Message number {number} of the user, with words."
        agent.write_record(type="user", message={"content": text})
    agent.call(150_000)
    await agent.observe("compacting")
    context = (await agent.observe("compacted")).context or ""
    assert 2_000 < utf16_length(context) <= 3_000
    assert "more left out]" in context


async def test_transcript_is_read_before_the_compaction_begins(tmp_path: Path) -> None:
    """What it had when it grew by a step is in the draft, also if the file has lost it since."""
    agent = Agent(tmp_path)
    agent.write_record(type="user", message={"content": "Fix the parser."})
    agent.write_record(type="attachment", attachment={"type": "x", "text": "x" * (1 << 20)})
    agent.call(150_000)
    await agent.observe("tool")
    (reading_on,) = (task for task in asyncio.all_tasks() if "_read_on" in repr(task))
    await reading_on
    data = agent.path.read_bytes()
    agent.path.write_bytes(data.replace(b"Fix the parser.", b"Fix the writer."))
    agent.write_record(type="user", message={"content": "Then the docs."})
    await agent.observe("compacting")
    context = (await agent.observe("compacted")).context or ""
    assert "- Fix the parser.\n" in context
    assert "> Then the docs.\n" in context
