"""A transcript that was moved away, or lost its beginning: the monitor keeps what it knew."""

from pathlib import Path

import pytest

from brimline.store.rows import ThreadRow

from .agent import Agent
from .test_restart import observe_file


async def main_row(agent: Agent) -> ThreadRow:
    (row,) = await agent.store.threads(agent.session)
    return row


async def add_calls(agent: Agent, *sents: int) -> None:
    for sent in sents:
        agent.call(sent)
        await agent.observe("tool")


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("hooked", [False, True])
async def test_calls_of_a_transcript_that_was_moved_away_are_kept(
    tmp_path: Path, restarted: bool, hooked: bool
) -> None:
    agent = Agent(tmp_path)
    for sent in range(20_000, 34_000, 1_000):
        agent.call(sent)
    await (agent.observe("tool") if hooked else observe_file(agent))
    agent.path.rename(tmp_path / "elsewhere.jsonl")
    agent.call(34_000)
    if restarted:
        agent.new_monitor()
    await (agent.observe("tool") if hooked else observe_file(agent))
    row = await main_row(agent)
    assert (row.calls, row.sent, row.peak_sent) == (15, 34_000, 34_000)
    agent.new_monitor()
    agent.call(35_000)
    await (agent.observe("tool") if hooked else observe_file(agent))
    assert (await main_row(agent)).calls == 16
    rows = await agent.store.calls(agent.session)
    assert [row.input for row in rows] == [*range(20_000, 36_000, 1_000)]
    assert [row.seq for row in rows] == [*range(16)]


async def test_calls_are_kept_while_there_is_no_transcript(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await add_calls(agent, 20_000, 21_000)
    agent.path.unlink()
    agent.new_monitor()
    await agent.observe("tool")
    row = await main_row(agent)
    assert (row.calls, row.sent, row.state) == (2, 21_000, "measured")


async def test_compactions_of_a_transcript_that_was_moved_away_are_kept(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await add_calls(agent, 150_000)
    agent.boundary()
    await add_calls(agent, 30_000)
    agent.path.unlink()
    await add_calls(agent, 31_000)
    assert agent.reading() == (31_000, "measured", 1)
    assert (await main_row(agent)).calls == 3


async def test_calls_that_the_client_removed_from_the_end_are_gone(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await add_calls(agent, 20_000, 21_000, 22_000)
    first, *_ = agent.path.read_text().splitlines(keepends=True)
    agent.path.write_text(first)
    await agent.observe("tool")
    row = await main_row(agent)
    assert (row.calls, row.sent) == (1, 20_000)


async def test_calls_are_kept_if_a_transcript_without_hooks_has_lost_all(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(20_000)
    agent.call(21_000)
    await observe_file(agent)
    agent.path.unlink()
    agent.write_record(type="user", message={"role": "user", "content": "go on"})
    await observe_file(agent)
    assert (await main_row(agent)).calls == 2
    agent.call(22_000)
    await observe_file(agent)
    row = await main_row(agent)
    assert (row.calls, row.sent) == (3, 22_000)
