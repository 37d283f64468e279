"""Levels of subagents are delivered while they run and cancelled when they end."""

from pathlib import Path

import msgspec
import pytest

from brimline.context.events import Call
from brimline.context.usage import Usage

from .agent import MODEL, Agent

SUBAGENT = "a1"


async def push_call(agent: Agent, sent: int, of: str = "claude") -> None:
    """Push a call of the subagent."""
    call = Call(id=f"c{sent}", usage=Usage(sent, 0, 0, 1), model=MODEL, thread=SUBAGENT)
    observation = agent.observation("pushed", events=(call,))
    await agent.monitor.observe(msgspec.structs.replace(observation, agent=of, transcript=None))


async def message_states(agent: Agent) -> list[str]:
    return [message.state for message in await agent.store.messages("s1")]


async def test_only_the_last_level_asks_a_subagent_for_its_results(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.observe("started")
    for sent in (110_000, 140_000):
        await push_call(agent, sent)
    first, last = [message.text for message in await agent.store.messages("s1")]
    assert (first.startswith("[brimline] Your context is at 55%"), "results" in first) == (
        True,
        False,
    )
    assert last.endswith("Finish your work and report your results.")


async def test_end_of_a_subagent_cancels_its_messages_but_not_the_session(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.observe("started")
    await push_call(agent, 140_000)
    assert await message_states(agent) == ["queued"]
    await agent.observe("ended", thread=SUBAGENT)
    assert await message_states(agent) == ["cancelled"]
    row = await agent.store.session("s1")
    assert row is not None
    assert row.ended_at is None


async def test_level_reached_at_the_end_of_a_subagent_is_cancelled(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.monitor.send("s1", "hello")
    usage, at = Usage(140_000, 0, 0, 1), agent.time
    call = Call(id="last", usage=usage, model=MODEL, thread=SUBAGENT, at=at)
    await agent.observe("ended", thread=SUBAGENT, events=(call,))
    assert sorted(await message_states(agent)) == ["cancelled", "queued"]
    assert [signal.level for signal in agent.environment.signals] == [65.0]


async def test_end_of_a_subagent_does_not_revive_an_ended_session(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await push_call(agent, 20_000)
    await agent.observe("ended")
    await agent.observe("ended", thread=SUBAGENT)
    row = await agent.store.session("s1")
    assert row is not None
    assert row.ended_at is not None


async def test_call_before_the_end_does_not_revive_a_session(tmp_path: Path) -> None:
    """Copilot CLI writes its last call after the hook of the end; a later call revives it."""
    agent = Agent(tmp_path)
    agent.time = 1_794_736_800.0  # as in the transcript
    agent.call(20_000)
    await agent.observe("ended")
    ended: list[bool] = []
    for agent.hour in (10, 11):
        agent.call(30_000)
        await agent.observe("wrote")
        row = await agent.store.session("s1")
        ended.append(row is not None and row.has_ended)
    assert ended == [True, False]


@pytest.mark.parametrize("of", ["codex", "copilot", "gemini", "kilo", "opencode"])
async def test_level_of_a_subagent_without_hooks_is_signalled_but_not_queued(
    tmp_path: Path, of: str
) -> None:
    agent = Agent(tmp_path)
    await push_call(agent, 900_000, of)
    assert await message_states(agent) == []
    assert [signal.thread for signal in agent.environment.signals] == [SUBAGENT]
