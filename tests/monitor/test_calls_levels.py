"""Levels in calls left: they fire once per cycle, as those in percent do."""

from pathlib import Path
from typing import Any

import pytest

from brimline.context.window import Overrides
from brimline.handoff import Document

from .agent import Agent
from .fleet import Fleet, call

STEP = 12_000


def agent_with(folder: Path, calls: tuple[float, ...] = (-10.0,), **rules: Any) -> Agent:
    return Agent(folder, levels=(), calls_levels=calls, **rules)


async def grow(agent: Agent, start: int, end: int, step: int) -> None:
    """Grow by calls with a hook after each."""
    for sent in range(start, end, step):
        agent.call(sent)
        await agent.observe("tool")


async def levels_of(agent: Agent) -> list[tuple[int, float, int]]:
    rows = await agent.store.signals("s1")
    return [(row.cycle, row.level, row.arm) for row in rows if row.kind == "level"]


async def test_level_of_calls_left_fires_once_per_cycle_also_after_a_restart(
    tmp_path: Path,
) -> None:
    agent = agent_with(tmp_path)
    await grow(agent, 60_000, 144_000, STEP)
    assert await levels_of(agent) == []
    await grow(agent, 144_000, 156_000, STEP)
    assert await levels_of(agent) == [(0, -10.0, 0)]
    (message,) = await agent.store.messages("s1")
    assert (message.level, message.urgency, message.state) == (-10.0, "urgent", "delivered")
    assert "Write a handoff document now" in message.text
    agent.new_monitor()
    await grow(agent, 156_000, 166_000, STEP)
    assert await levels_of(agent) == [(0, -10.0, 0)]
    agent.boundary()
    await agent.observe("compacted")
    await grow(agent, 60_000, 166_000, STEP)
    assert await levels_of(agent) == [(0, -10.0, 0), (1, -10.0, 0)]


async def test_jump_over_two_levels_of_calls_left_sends_one_message(tmp_path: Path) -> None:
    agent = agent_with(tmp_path, (-40.0, -10.0))
    for sent in range(60_000, 164_000, STEP):
        agent.call(sent)
    await agent.observe("tool")
    assert await levels_of(agent) == [(0, -10.0, 0)]
    assert [each.level for each in await agent.store.messages("s1")] == [-10.0]


async def test_level_in_percent_and_one_of_calls_left_together_send_one_message(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path, levels=(50.0, 95.0), calls_levels=(-10.0,))
    for sent in range(60_000, 164_000, STEP):
        agent.call(sent)
    context = (await agent.observe("tool")).context or ""
    assert [row[1] for row in await levels_of(agent)] == [50.0, -10.0]
    delivered = [each for each in await agent.store.messages("s1") if each.state == "delivered"]
    assert [each.level for each in delivered] == [-10.0]
    assert context.count("[brimline]") == 1


async def test_handoff_rearms_a_level_of_calls_left(tmp_path: Path) -> None:
    agent = agent_with(tmp_path)
    await grow(agent, 60_000, 164_000, STEP)
    assert await levels_of(agent) == [(0, -10.0, 0)]
    await agent.monitor.hand_over("s1", Document.of("text", "/h.md", 1.0), "agent")
    agent.call(157_000)
    await agent.observe("tool")
    assert await levels_of(agent) == [(0, -10.0, 0)]  # no more than 10 were left since


async def test_without_the_setting_no_level_of_calls_left_fires(tmp_path: Path) -> None:
    agent = agent_with(tmp_path, ())
    await grow(agent, 60_000, 164_000, STEP)
    assert await levels_of(agent) == []


@pytest.mark.parametrize("replicas", [1, 3])
async def test_replicas_fire_a_level_of_calls_left_once(replicas: int) -> None:
    sizes = Overrides({"*": 200_000}, {"*": 167_000})
    fleet = Fleet(replicas, levels=(), calls_levels=(-10.0,), overrides=sizes)
    for number in range(10):
        await fleet.push(number % replicas, call(number, 50_000 + STEP * number))
    rows = [(row.level, row.arm) for row in await fleet.store.signals("s") if row.kind == "level"]
    assert rows == [(-10.0, 0)]
