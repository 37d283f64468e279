"""The system clock is set back while sessions run."""

from pathlib import Path

import pytest

from brimline.context.inbox import DELIVERY_LEASE_S
from brimline.handoff import Document
from brimline.monitor.hook_reply import SENT_AGAIN

from .agent import Agent

HOUR = 3_600.0


def start_agent(folder: Path) -> Agent:
    """Start late enough that the clock can be set back."""
    agent = Agent(folder)
    agent.time = 1_000_000.0
    return agent


async def test_status_line_before_a_compaction_is_dropped_when_the_clock_goes_back(
    tmp_path: Path,
) -> None:
    agent = start_agent(tmp_path)
    agent.call(40_000)
    await agent.status(40_000)
    agent.time -= HOUR
    agent.boundary()
    await agent.observe("compacted")
    assert agent.reading() == (None, "unknown", 1)


async def test_status_line_counts_after_the_clock_goes_back_but_not_when_it_is_late(
    tmp_path: Path,
) -> None:
    agent = start_agent(tmp_path)
    await agent.status(40_000)
    agent.time -= 3.0
    await agent.status(30_000)
    assert agent.reading()[0] == 40_000
    agent.time -= HOUR
    await agent.status(50_000)
    assert agent.reading()[0] == 50_000


@pytest.mark.parametrize("restarts", [False, True])
async def test_handoff_returns_after_a_compaction_when_the_clock_goes_back(
    tmp_path: Path, restarts: bool
) -> None:
    agent = start_agent(tmp_path)
    agent.call(40_000)
    await agent.observe("tool")
    await agent.monitor.hand_over("s1", Document.of("Go on.", "h.md", 1.0), "agent")
    agent.time -= HOUR
    agent.boundary()
    if restarts:
        await agent.monitor.observe(agent.observation("compacted"))
        agent.new_monitor()
    reply = await agent.observe("prompt" if restarts else "compacted")
    assert "Go on." in (reply.context or "")


async def test_unacknowledged_message_is_sent_again_when_the_clock_goes_back(
    tmp_path: Path,
) -> None:
    agent = start_agent(tmp_path)
    await agent.observe("prompt")
    await agent.monitor.send("s1", "hello")
    handed = await agent.monitor.observe(agent.observation("prompt"))
    assert handed.context == "[message from user] hello"
    agent.time += DELIVERY_LEASE_S / 2
    assert (await agent.observe("prompt")).context is None
    agent.time -= HOUR
    assert (await agent.observe("prompt")).context == f"{SENT_AGAIN}\n[message from user] hello"
