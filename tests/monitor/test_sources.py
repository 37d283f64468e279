"""Where the monitor knows things from: files without hooks, subagents' files, pushed events."""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec

from brimline.events import MAIN, AnyEvent, Call, Cleared, Compacted, Compacting, Ended
from brimline.handoff import Document
from brimline.monitor.session_state import RestoredPosition, SessionState
from brimline.observations import Observation, Reply
from brimline.store.rows import SignalRow
from brimline.transcripts.source import Transcript
from brimline.usage import Usage

from .agent import MODEL, Agent

SUBAGENT = "a1b2"


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine."""
    asyncio.run(work)


def found(agent: Agent, path: Path | None = None, thread: str = MAIN) -> Transcript:
    """A file of the session as it is found."""
    path = path or agent.path
    status = path.stat()
    return Transcript("claude", str(path), status.st_mtime, status.st_size, agent.session, thread)


async def wrote(agent: Agent, path: Path | None = None, thread: str = MAIN) -> Reply:
    """The monitor hears that a file grew; no hook tells of it."""
    heard = agent.heard("wrote", file=found(agent, path, thread))
    return await agent.monitor.observe(msgspec.structs.replace(heard, transcript=None))


def subagent_call(agent: Agent, path: Path, number: int, sent: int) -> None:
    """A call of a subagent, in its own file."""
    usage = {"input_tokens": sent, "output_tokens": 10}
    record = {
        "type": "assistant",
        "sessionId": agent.session,
        "isSidechain": True,
        "agentId": SUBAGENT,
        "version": "2.1.325",
        "timestamp": "2026-11-15T10:00:00Z",
        "message": {"id": f"sub_{number}", "model": MODEL, "usage": usage},
    }
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def kinds(agent: Agent) -> list[str]:
    """What was signalled."""
    return [signal.kind for signal in agent.around.signals]


def test_without_hooks(tmp_path: Path) -> None:
    """An agent without hooks is watched by its files: readings, levels, compactions, calls."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(20_000)
        await wrote(agent)
        assert agent.reading() == (20_000, "measured", 0)
        agent.call(150_000)
        assert await wrote(agent) == Reply()
        agent.boundary()
        agent.call(30_000)
        await wrote(agent)
        assert agent.reading() == (30_000, "measured", 1)
        assert kinds(agent) == ["level", "compacted"]
        (made,) = await agent.store.compactions("s1")
        assert (made.cycle, made.trigger, made.before, made.after) == (0, "auto", 150_000, 30_000)
        assert [(c.cycle, c.input) for c in await agent.store.calls("s1")] == [
            (0, 20_000),
            (0, 150_000),
            (1, 30_000),
        ]

    run(go())


def test_past_is_no_news(tmp_path: Path) -> None:
    """Compactions from before a session was first seen are kept, and nobody is told of them."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.parent = "above"
        for _ in range(3):
            agent.call(150_000)
            agent.boundary()
        agent.call(30_000)
        await wrote(agent)
        assert kinds(agent) == []
        assert len(await agent.store.compactions("s1")) == 3
        assert await agent.store.messages("above") == []

    run(go())


def test_compaction_while_nobody_watched(tmp_path: Path) -> None:
    """One that came while the monitor was away is told by the next one."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(150_000)
        await agent.tell("tool")
        agent.boundary()
        agent.call(30_000)
        agent.new_monitor()
        await wrote(agent)
        assert kinds(agent) == ["level", "compacted"]

    run(go())


def test_subagent(tmp_path: Path) -> None:
    """A subagent is a thread with a window of its own, and is told by its own hooks alone."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(20_000)
        await agent.tell("tool")
        path = tmp_path / f"agent-{SUBAGENT}.jsonl"
        subagent_call(agent, path, 1, 140_000)
        await wrote(agent, path, SUBAGENT)
        threads = {row.thread: row for row in await agent.store.threads("s1")}
        assert threads[MAIN].sent == 20_000
        assert (threads[SUBAGENT].sent, threads[SUBAGENT].percent) == (140_000, 70.0)
        assert (await agent.tell("tool")).context is None
        told = await agent.tell("tool", thread=SUBAGENT)
        assert told.context is not None
        assert "report your results" in told.context
        assert (await agent.tell("tool", thread=SUBAGENT)).context is None
        assert agent.reading() == (20_000, "measured", 0)

    run(go())


def test_handoff_arms_anew(tmp_path: Path) -> None:
    """After a handoff a level is told when the figure comes up to it again, and not before."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(120_000)
        await agent.tell("tool")
        await agent.monitor.hand_over("s1", Document.of("text", "h.md", 1.0), "agent")
        agent.call(125_000)
        await agent.tell("tool")
        assert kinds(agent) == ["level"]
        await agent.status(90_000)
        await agent.status(126_000)
        agent.new_monitor()
        await agent.status(128_000)
        assert [(s.level, s.arm) for s in agent.around.signals] == [(50.0, 0), (50.0, 1)]

    run(go())


def test_restart_below_a_level_that_was_armed_anew(tmp_path: Path) -> None:
    """A level that the figure had left when the daemon died is told when it is reached again."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(120_000)
        await agent.tell("tool")
        await agent.monitor.hand_over("s1", Document.of("text", "h.md", 1.0), "agent")
        agent.call(90_000)
        await agent.tell("tool")
        agent.new_monitor()
        agent.call(121_000)
        await agent.tell("tool")
        assert [(s.level, s.arm) for s in agent.around.signals] == [(50.0, 0), (50.0, 1)]

    run(go())


def test_handoff_below_a_level_that_was_told(tmp_path: Path) -> None:
    """A handoff arms a level that the figure has left by then: the next call may reach it."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(120_000)
        await agent.tell("tool")
        agent.call(20_000)
        await agent.tell("tool")
        await agent.monitor.hand_over("s1", Document.of("text", "h.md", 1.0), "agent")
        agent.call(120_000)
        await agent.tell("tool")
        assert [(s.level, s.arm) for s in agent.around.signals] == [(50.0, 0), (50.0, 1)]

    run(go())


def test_fall_to_a_level_that_was_jumped_over(tmp_path: Path) -> None:
    """A handoff at the higher of two levels is done with both: a fall below it tells nothing."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(140_000)
        await agent.tell("tool")
        await agent.monitor.hand_over("s1", Document.of("text", "h.md", 1.0), "agent")
        agent.call(120_000)
        await agent.tell("tool")
        assert [s.level for s in agent.around.signals] == [65.0]
        agent.call(141_000)
        await agent.tell("tool")
        assert [(s.level, s.arm) for s in agent.around.signals] == [(65.0, 0), (65.0, 1)]

    run(go())


def test_handoff_does_not_ask_again(tmp_path: Path) -> None:
    """Who has just handed over at the last level is not asked again, nor after a restart."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(150_000)
        assert (await agent.tell("tool")).context
        await agent.monitor.hand_over("s1", Document.of("text", "h.md", 1.0), "agent")
        agent.call(151_000)
        assert (await agent.tell("tool")).context is None
        agent.new_monitor()
        assert (await agent.tell("tool")).context is None
        assert len(agent.around.signals) == 1

    run(go())


def test_sources_disagree(tmp_path: Path) -> None:
    """A status line and a transcript that differ for a while are a signal, once; a lag is none."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(50_000)
        for _ in range(4):
            await agent.status(60_000)
        assert kinds(agent) == []
        agent.time += 100
        await agent.status(60_000)
        await agent.status(60_000)
        assert kinds(agent) == ["disagree"]

    run(go())


def test_sources_agree_again(tmp_path: Path) -> None:
    """A status line that was ahead of the transcript, and is no more, disagrees with nothing."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(50_000)
        for _ in range(4):
            await agent.status(60_000)
        agent.call(60_000)
        await agent.status(60_000)
        agent.time += 100
        await agent.status(61_000)
        assert kinds(agent) == []

    run(go())


def test_hooks_that_tell_nothing(tmp_path: Path) -> None:
    """Calls that no hook told of, though hooks are installed, are a signal; one hook clears it."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.around.since = 1.0
        for sent in range(10_000, 14_000, 1_000):
            agent.call(sent)
            await wrote(agent)
        await agent.tell("tool")
        for sent in range(20_000, 24_000, 1_000):
            agent.call(sent)
            await wrote(agent)
        assert kinds(agent) == []
        agent.call(25_000)
        await wrote(agent)
        await wrote(agent)
        assert kinds(agent) == ["no data"]

    run(go())


def test_session_older_than_the_hooks(tmp_path: Path) -> None:
    """A session that began before the hooks were installed does not have them."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.around.since = 4e9
        for sent in range(10_000, 20_000, 1_000):
            agent.call(sent)
            await wrote(agent)
        assert kinds(agent) == []

    run(go())


def test_clear_in_the_same_session(tmp_path: Path) -> None:
    """A clear ends the cycle: what waits is cancelled, levels fire again; it is no compaction."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(120_000)
        await agent.tell("tool")
        await agent.tell("cleared")
        assert agent.reading() == (None, "unknown", 1)
        assert kinds(agent) == ["level", "cleared"]
        assert [m.state for m in await agent.store.messages("s1")] == ["cancelled"]
        await agent.status(130_000)
        assert [(s.kind, s.cycle) for s in agent.around.signals][-1] == ("level", 1)

    run(go())


def test_clear_of_nothing(tmp_path: Path) -> None:
    """A session that begins with a clear has nothing to end."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.tell("cleared")
        assert agent.reading() == (None, "unknown", 0)
        assert kinds(agent) == []

    run(go())


def test_end_and_resume(tmp_path: Path) -> None:
    """What an agent was not told before it ended, it is told when it is resumed."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(120_000)
        await agent.tell("tool")
        await agent.tell("ended")
        row = await agent.store.session("s1")
        assert row is not None
        assert row.ended_at == agent.time
        assert "60%" in ((await agent.tell("prompt")).context or "")

    run(go())


def test_status_that_is_late(tmp_path: Path) -> None:
    """An older status that comes out of the spool does not go over a newer one."""

    async def go() -> None:
        agent = Agent(tmp_path)
        old = agent.heard("status", usage=Usage(10_000, 0, 0, 0), is_late=True)
        await agent.status(60_000)
        await agent.monitor.observe(old)
        assert agent.reading()[0] == 60_000

    run(go())


def test_told_late_of_a_cycle_that_is_over(tmp_path: Path) -> None:
    """What is in the spool from before a compaction says nothing of the context after it."""

    async def go() -> None:
        agent = Agent(tmp_path)
        before = [
            agent.heard("status", usage=Usage(140_000, 0, 0, 0), window=200_000, is_late=True),
            agent.heard("compacting", is_late=True),
        ]
        agent.call(140_000)
        agent.boundary()
        for heard in before:
            await agent.monitor.observe(heard)
        assert agent.reading() == (None, "unknown", 1)
        agent.call(40_000)
        await agent.monitor.observe(
            agent.heard("status", usage=Usage(140_000, 0, 0, 0), is_late=True)
        )
        assert agent.reading() == (40_000, "measured", 1)
        assert kinds(agent) == []

    run(go())


def test_compacting_that_is_late(tmp_path: Path) -> None:
    """A compaction that began long ago, by the spool, is not still going on."""

    async def go() -> None:
        agent = Agent(tmp_path)
        late = agent.heard("compacting", is_late=True)
        agent.call(30_000)
        await agent.monitor.observe(late)
        assert agent.reading() == (30_000, "measured", 0)

    run(go())


def pushed(agent: Agent, event: AnyEvent, id: str) -> Observation:
    """An event that a program tells of its own session."""
    return Observation(id, "my-agent", "sdk-1", "pushed", agent.time, events=(event,))


def call(id: str, sent: int) -> Call:
    """A call of a program's own agent."""
    return Call(at=1.0, id=id, usage=Usage(sent, 0, 0, 10), model=MODEL)


def test_pushed_events(tmp_path: Path) -> None:
    """A program's events are folded like a transcript's, each once, also after a restart."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.monitor.observe(pushed(agent, call("c1", 120_000), "e1"))
        assert (await agent.monitor.observe(pushed(agent, call("c1", 120_000), "e1"))).is_duplicate
        await agent.monitor.observe(pushed(agent, Compacted(at=2.0, trigger="auto"), "e2"))
        agent.new_monitor()
        assert (await agent.monitor.observe(pushed(agent, Compacted(at=2.0), "e2"))).is_duplicate
        await agent.monitor.observe(pushed(agent, call("c2", 30_000), "e3"))
        reading = agent.monitor.reading("sdk-1")
        assert (reading.sent, reading.cycle) == (30_000, 1)
        calls = await agent.store.calls("sdk-1")
        assert [(row.call, row.cycle) for row in calls] == [("c1", 0), ("c2", 1)]
        assert kinds(agent) == ["level", "compacted"]

    run(go())


def test_pushed_clear_and_end(tmp_path: Path) -> None:
    """A program's clear is no compaction, its compaction goes on until it ends, its end ends it."""

    async def go() -> None:
        agent = Agent(tmp_path)
        events: list[AnyEvent] = [call("c1", 50_000), Cleared(), call("c2", 20_000), Compacting()]
        for number, event in enumerate(events):
            await agent.monitor.observe(pushed(agent, event, f"e{number}"))
        assert kinds(agent) == ["cleared", "compacting"]
        assert agent.monitor.reading("sdk-1").state == "compacting"
        await agent.monitor.observe(pushed(agent, Compacted(at=3.0), "e8"))
        await agent.monitor.observe(pushed(agent, Ended(), "e9"))
        assert kinds(agent) == ["cleared", "compacting", "compacted"]
        row = await agent.store.session("sdk-1")
        assert row is not None
        assert row.ended_at == agent.time

    run(go())


def test_end_and_a_last_record(tmp_path: Path) -> None:
    """What a client writes after its end does not bring a session back; a call does."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(20_000)
        await agent.tell("tool")
        await agent.tell("ended")
        agent.line(type="summary", summary="Done")
        await wrote(agent)
        row = await agent.store.session("s1")
        assert row is not None
        assert row.seen_at == row.ended_at
        agent.call(21_000)
        await wrote(agent)
        row = await agent.store.session("s1")
        assert row is not None
        assert row.seen_at > (row.ended_at or 0.0)

    run(go())


def test_restart_of_pushed_session(tmp_path: Path) -> None:
    """What no file tells is known again from the store: calls, compactions, clears."""

    async def go() -> None:
        agent = Agent(tmp_path)
        events: list[AnyEvent] = [
            call("c1", 50_000),
            Compacted(at=2.0, trigger="manual"),
            call("c2", 20_000),
            Cleared(),
            call("c3", 10_000),
        ]
        for number, event in enumerate(events):
            await agent.monitor.observe(pushed(agent, event, f"e{number}"))
        before = agent.monitor.reading("sdk-1")
        agent.new_monitor()
        await agent.monitor.observe(pushed(agent, call("c4", 11_000), "e9"))
        after = agent.monitor.reading("sdk-1")
        assert (before.sent, before.cycle) == (10_000, 2)
        assert (after.sent, after.cycle) == (11_000, 2)
        watched = agent.monitor.state_of("sdk-1")
        assert watched is not None
        assert list(watched.folded.threads[MAIN].calls) == ["c1", "c2", "c3", "c4"]

    run(go())


def test_nothing_new_is_not_written(tmp_path: Path) -> None:
    """A hook that tells nothing new is no write: the agent waits for no disk."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(20_000)
        await agent.tell("tool")
        marks = await agent.store.changes()
        for _ in range(5):
            await agent.tell("tool")
        assert await agent.store.changes() == marks
        agent.time += 60
        await agent.tell("tool")
        assert await agent.store.changes() != marks

    run(go())


def test_thrash_is_told(tmp_path: Path) -> None:
    """Compactions without end are told to the parent, in words."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.parent = "above"
        for _ in range(5):
            agent.call(150_000)
            await agent.tell("tool")
            agent.boundary()
            await agent.tell("compacted")
        thrash = [signal for signal in agent.around.signals if signal.kind == "thrash"]
        assert thrash
        assert all("times in ten minutes" in signal.text for signal in thrash)
        texts = [message.text for message in await agent.store.messages("above")]
        assert any("times in ten minutes" in text for text in texts)

    run(go())


def test_row_of_a_signal() -> None:
    """The key of a signal has its arm: the same level after a handoff is another."""
    assert SignalRow("s", MAIN, 0, "level", 1.0, 50.0).arm == 0


def test_calls_that_are_not_read_yet() -> None:
    """After a restart calls that are known, and whose file is still to be read, are no fewer."""

    async def go() -> None:
        watched = SessionState("claude", "s1", RestoredPosition(calls=500))
        await watched.apply(Observation("1", "claude", "s1", "wrote", 1.0, thread="subagent"))
        assert watched.calls_without_hook == 0

    run(go())
