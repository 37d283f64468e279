"""A clear that only a hook reports ends a cycle, and later compactions end theirs."""

import asyncio
import threading
from pathlib import Path

import msgspec
import pytest

from brimline.agents.observations import Observation
from brimline.agents.transcripts.source import Transcript
from brimline.context.events import MAIN, Call, Compacted
from brimline.context.usage import Usage
from brimline.monitor.transcript_follower import Progress, TranscriptFollower, read_on_from

from .agent import MODEL, Agent

PATIENCE_S = 20.0


def ends_of(agent: Agent) -> list[tuple[str, int]]:
    """Return the signals of cycles that ended."""
    kinds = ("cleared", "compacted")
    return [(row.kind, row.cycle) for row in agent.environment.signals if row.kind in kinds]


async def cycles_of(agent: Agent) -> tuple[list[int], list[int]]:
    """Return the stored cycles of the calls and of the compactions."""
    calls, compactions = await agent.store.calls("s1"), await agent.store.compactions("s1")
    return [row.cycle for row in calls], [row.cycle for row in compactions]


async def write_cleared_session(agent: Agent) -> None:
    """Write two calls, a clear that is reported twice, and a call of the same size."""
    for sent in (20_000, 21_000):
        agent.call(sent)
        await agent.observe("tool")
    await agent.observe("cleared")
    await agent.observe("cleared")
    assert agent.reading() == (None, "unknown", 1)
    agent.call(22_000)
    await agent.observe("tool")
    assert agent.reading() == (22_000, "measured", 1)


async def test_compaction_after_an_unrecorded_clear_ends_a_cycle(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await write_cleared_session(agent)
    agent.boundary()
    await agent.observe("compacted")
    agent.call(5_000)
    await agent.observe("tool")
    assert agent.reading() == (5_000, "measured", 2)
    assert ends_of(agent) == [("cleared", 0), ("compacted", 1)]
    assert await cycles_of(agent) == ([0, 0, 1, 2], [1])


async def test_compaction_that_is_recorded_while_the_daemon_is_down_ends_a_cycle(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    await write_cleared_session(agent)
    agent.boundary()
    agent.call(5_000)
    agent.new_monitor()
    await agent.observe("tool")
    assert agent.reading() == (5_000, "measured", 2)
    assert ends_of(agent) == [("cleared", 0), ("compacted", 1)]
    agent.new_monitor()
    await agent.observe("tool")
    assert agent.reading() == (5_000, "measured", 2)
    assert await cycles_of(agent) == ([0, 0, 1, 2], [1])


async def test_restart_right_after_an_unrecorded_clear_keeps_its_place(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(20_000)
    await agent.observe("tool")
    await agent.observe("cleared")
    agent.new_monitor()
    await agent.observe("prompt")
    assert agent.reading() == (None, "unknown", 1)
    agent.call(21_000)
    agent.new_monitor()
    await agent.observe("tool")
    assert agent.reading() == (21_000, "measured", 1)
    assert await cycles_of(agent) == ([0, 1], [])


async def test_copy_of_the_call_before_an_unrecorded_clear_does_not_repeat_it(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    await write_cleared_session(agent)
    lines = agent.path.read_text().splitlines(keepends=True)
    agent.path.write_text("".join([*lines[:2], lines[1], *lines[2:], lines[1]]))
    agent.call(23_000)
    agent.new_monitor()
    await agent.observe("tool")
    assert agent.reading() == (23_000, "measured", 1)
    assert await cycles_of(agent) == ([0, 0, 1, 1], [])


async def test_transcript_that_moves_keeps_an_unrecorded_clear(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await write_cleared_session(agent)
    agent.path = agent.path.rename(tmp_path / "moved.jsonl")
    agent.boundary()
    agent.call(5_000)
    await agent.observe("tool")
    assert agent.reading() == (5_000, "measured", 2)


@pytest.mark.parametrize("restarted", [False, True])
async def test_compaction_that_was_first_reported_as_a_clear_ends_one_cycle(
    tmp_path: Path, restarted: bool
) -> None:
    agent = Agent(tmp_path)
    agent.call(20_000)
    await agent.observe("tool")
    await agent.observe("cleared")
    agent.boundary()
    if restarted:
        agent.new_monitor()
    agent.call(5_000)
    await agent.observe("tool")
    assert agent.reading() == (5_000, "measured", 1)
    assert await cycles_of(agent) == ([0, 1], [0])


async def test_spooled_clear_from_before_the_last_call_ends_no_cycle(tmp_path: Path) -> None:
    """/clear starts a session of its own, which goes on while the daemon is down."""
    agent = Agent(tmp_path)
    late = agent.observation("cleared", is_late=True)
    agent.call(30_000)
    await agent.monitor.observe(late)
    assert agent.reading() == (30_000, "measured", 0)
    assert ends_of(agent) == []


async def test_clear_of_a_session_without_files_survives_a_restart(tmp_path: Path) -> None:
    agent = Agent(tmp_path)

    async def push(id: str, *events: Call | Compacted) -> None:
        pushed = Observation(id, "mine", "s1", "pushed", agent.time, events=events)
        await agent.monitor.observe(pushed)

    def call(id: str, sent: int) -> Call:
        return Call(at=agent.time, id=id, usage=Usage(sent, 0, 0, 10), model=MODEL)

    await push("e1", call("c1", 20_000))
    cleared = agent.observation("cleared")
    await agent.monitor.observe(msgspec.structs.replace(cleared, agent="mine", transcript=None))
    await push("e2", call("c2", 21_000))
    agent.new_monitor()
    await push("e3", call("c3", 22_000))
    assert agent.reading() == (22_000, "measured", 1)
    await push("e4", Compacted(at=9.0), call("c4", 5_000))
    assert agent.reading() == (5_000, "measured", 2)
    assert await cycles_of(agent) == ([0, 1, 1, 2], [1])


async def test_read_that_began_before_a_clear_does_not_undo_it(tmp_path: Path) -> None:
    agent, released, hangs = Agent(tmp_path), threading.Event(), threading.Event()

    def read_on(transcript: Transcript, before: Progress) -> Progress | None:
        assert not hangs.is_set() or released.wait(PATIENCE_S)
        return read_on_from(transcript, before)

    agent.call(20_000)
    transcript = Transcript("claude", str(agent.path), 0.0, 0)
    follower = TranscriptFollower(transcript, read_on, PATIENCE_S)
    await follower.catch_up()
    hangs.set()
    agent.call(21_000)
    reading = asyncio.create_task(follower.catch_up())
    await asyncio.sleep(0)
    follower.add_clear("msg_1")
    released.set()
    await reading
    await follower.catch_up()
    main = follower.session.threads[MAIN]
    assert (main.cycle, main.clears, main.call_count) == (1, (1,), 2)
