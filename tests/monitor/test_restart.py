"""Another monitor takes over: what is known of a session is what the one before knew."""

import asyncio
from itertools import count
from pathlib import Path

import msgspec

from brimline.events import AnyEvent, Call, Cleared, Compacted, WindowReported
from brimline.observations import Observation, Reply
from brimline.transcripts.source import Transcript
from brimline.usage import Usage

from .agent import MODEL, Agent

SESSION = "sdk-1"


class Program(Agent):
    """An agent that somebody built: it has no file, and tells its events itself."""

    _told = count(1)

    async def push(self, *events: AnyEvent) -> None:
        """Tell the monitor, and let another take over after each."""
        for event in events:
            self.time += 1
            id = f"event-{next(self._told)}"
            heard = Observation(id, "my-agent", SESSION, "pushed", self.time, events=(event,))
            await self.monitor.observe(heard)
            self.new_monitor()

    async def read(self) -> tuple[int | None, int | None, int]:
        """What is stored: sent, the window, the cycle."""
        (row,) = await self.store.threads(SESSION)
        return row.sent, row.window, row.cycle


def call(id: str, sent: int) -> Call:
    """A call that sent so much."""
    return Call(at=1.0, id=id, usage=Usage(sent, 0, 0, 10), model=MODEL)


async def wrote(agent: Agent) -> Reply:
    """The monitor hears that a session's file is there; no hook tells of it."""
    found = Transcript("claude", str(agent.path), agent.time, agent.path.stat().st_size, "s1")
    heard = agent.heard("wrote", file=found)
    return await agent.monitor.observe(msgspec.structs.replace(heard, transcript=None))


def test_cycle_that_ended_after_the_last_call(tmp_path: Path) -> None:
    """A program's next call after a compaction or a clear is read, and its levels are told."""

    async def go() -> None:
        agent = Program(tmp_path)
        await agent.push(call("c1", 104_000), Compacted(at=2.0, trigger="auto"))
        await agent.push(call("c2", 101_000))
        assert await agent.read() == (101_000, 200_000, 1)
        await agent.push(Cleared(), call("c3", 102_000))
        assert await agent.read() == (102_000, 200_000, 2)
        levels = [(s.cycle, s.level) for s in agent.around.signals if s.kind == "level"]
        assert levels == [(0, 50.0), (1, 50.0), (2, 50.0)]
        assert [row.cycle for row in await agent.store.compactions(SESSION)] == [0]

    asyncio.run(go())


def test_window_that_a_program_reported(tmp_path: Path) -> None:
    """A window that was reported once is known still; the next report counts."""

    async def go() -> None:
        agent = Program(tmp_path)
        await agent.push(WindowReported(tokens=32_000), call("c1", 8_000), call("c2", 9_000))
        assert await agent.read() == (9_000, 32_000, 0)
        await agent.push(WindowReported(tokens=64_000))
        assert await agent.read() == (9_000, 64_000, 0)

    asyncio.run(go())


def test_compaction_that_a_fall_told(tmp_path: Path) -> None:
    """A compaction that no record tells stays one that was inferred."""

    async def go() -> None:
        agent = Program(tmp_path)
        await agent.push(call("c1", 90_000), call("c2", 20_000), call("c3", 21_000))
        assert await agent.read() == (21_000, 200_000, 1)
        (row,) = await agent.store.compactions(SESSION)
        assert (row.cycle, row.after, row.inferred) == (0, 20_000, True)

    asyncio.run(go())


def test_calls_that_hooks_told(tmp_path: Path) -> None:
    """Calls of before are no calls that no hook told of: the hooks are not taken for broken."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.around.since = 1.0
        for sent in range(20_000, 30_000, 1_000):
            agent.call(sent)
            await agent.tell("tool")
        agent.new_monitor()
        await wrote(agent)
        assert agent.around.signals == []

    asyncio.run(go())


def test_session_that_has_ended(tmp_path: Path) -> None:
    """Its file, read again, does not make it live; a call that it makes does."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(20_000)
        await agent.tell("tool")
        await agent.tell("ended")
        ended = agent.time
        agent.new_monitor()
        await wrote(agent)
        (row,) = await agent.store.sessions()
        assert (row.seen_at, row.ended_at, row.has_ended) == (ended, ended, True)
        agent.call(21_000)
        await wrote(agent)
        (row,) = await agent.store.sessions()
        assert not row.has_ended

    asyncio.run(go())


def test_session_that_was_forgotten(tmp_path: Path) -> None:
    """One that comes back after it was forgotten is kept whole, and is told its level again."""

    async def go() -> None:
        agent = Agent(tmp_path)
        for sent in (20_000, 120_000):
            agent.call(sent)
            await agent.tell("tool")
        await agent.monitor.forget(agent.time)
        assert len(await agent.store.sessions()) == 1
        await agent.monitor.forget(agent.time + 1)
        assert await agent.store.sessions() == []
        assert agent.monitor.state_of("s1") is None
        agent.call(121_000)
        assert "60.5%" in ((await agent.tell("prompt")).context or "")
        assert len(await agent.store.calls("s1")) == 3

    asyncio.run(go())
