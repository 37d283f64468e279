"""What the monitor holds of a session does not grow with its calls, and nothing it says changes."""

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from brimline.events import MAIN, AnyEvent, Call, Compacted, Rewound
from brimline.monitor.monitor import IDLE_SESSION_S, IDLE_SUBAGENT_S, MAX_CALLS_IN_MEMORY, Monitor
from brimline.monitor.session_state import SessionState
from brimline.monitor.signal_writes import PACE_CALLS
from brimline.observations import Observation, Pane
from brimline.server.api.views import Views
from brimline.store.rows import CallRow
from brimline.tracker import Thread
from brimline.transcripts.source import Transcript
from brimline.usage import Usage
from hypothesis_examples import examples
from object_graph import count_reachable

from .agent import MODEL, Agent

ALL_CALLS = 1_000_000
FEW_CALLS = 3


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's work."""
    asyncio.run(work)


def watched(agent: Agent, session: str = "s1") -> SessionState:
    """The session as the monitor holds it."""
    found = agent.monitor.state_of(session)
    assert found is not None
    return found


def main(agent: Agent, session: str = "s1") -> Thread:
    """The session's main thread."""
    return watched(agent, session).folded.threads[MAIN]


def line_of(agent: Agent, number: int, sent: int, output: int = 10) -> None:
    """A call in the transcript, whose time is its number."""
    usage = {"input_tokens": sent, "output_tokens": output}
    message = {"id": f"msg_{number}", "model": MODEL, "usage": usage}
    at = f"2026-11-15T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000Z"
    agent.line(type="assistant", timestamp=at, message=message)


async def stored(agent: Agent) -> list[object]:
    """All rows of the store; of messages not how many calls a level's text says are left."""
    store, session = agent.store, agent.session
    messages = [msgspec.structs.replace(m, text="") for m in await store.messages()]
    signals = [msgspec.structs.replace(s, text="") for s in await store.signals()]
    rows = [await store.threads(), await store.calls(session), await store.compactions()]
    return [*rows, signals, messages]


STEPS = st.one_of(
    st.tuples(st.just("calls"), st.integers(1, 9), st.integers(1_000, 220_000)),
    st.tuples(st.just("calls"), st.integers(1, 9), st.integers(1_000, 220_000)),
    st.tuples(st.just("copy"), st.integers(0, FEW_CALLS - 1), st.integers(1, 900)),
    st.tuples(st.just("old copy"), st.integers(1, 30), st.integers(1, 900)),
    st.tuples(st.just("compaction"), st.just(0), st.just(0)),
    st.tuples(st.just("restart"), st.just(0), st.just(0)),
)


async def live(agent: Agent, steps: Sequence[tuple[str, int, int]]) -> list[list[object]]:
    """Live through some steps, with a hook after each; the rows after each."""
    found: list[list[object]] = []
    sents: list[int] = []
    for what, number, size in steps:
        if what == "calls":
            for _ in range(number):
                sents.append(size + 100 * len(sents))
                line_of(agent, len(sents), sents[-1])
                await agent.tell("tool")
        elif what == "copy" and number < len(sents):
            line_of(agent, len(sents) - number, sents[-1 - number], size)
        elif what == "old copy" and number <= len(sents):
            line_of(agent, number, sents[number - 1], 10)
        elif what == "compaction":
            agent.boundary()
        elif what == "restart":
            agent.new_monitor()
        await agent.tell("prompt")
        found.append(
            [agent.monitor.reading("s1"), watched(agent).first_call_at, *await stored(agent)]
        )
    return found


@examples(50)
@given(st.lists(STEPS, min_size=1, max_size=12))
def test_rows_are_the_same_with_few_calls(steps: list[tuple[str, int, int]]) -> None:
    """Readings and rows do not depend on how many calls are in memory, old copies or not."""
    found: list[list[list[object]]] = []
    for kept in (ALL_CALLS, FEW_CALLS):
        with tempfile.TemporaryDirectory() as folder:
            found.append(asyncio.run(live(Agent(Path(folder), None, kept), steps)))
    assert found[1] == found[0]


def test_long_session(tmp_path: Path) -> None:
    """Of a long session few calls are in memory; forecast, trend and texts are as with all."""

    async def lived(folder: Path, kept: int) -> list[object]:
        folder.mkdir()
        agent = Agent(folder, None, kept)
        for number in range(1, 451):
            line_of(agent, number, 10_000 + 350 * (number % 300) + number % 7)
            if number == 100:
                agent.boundary()
            await agent.tell("tool")
        if kept == MAX_CALLS_IN_MEMORY:
            assert len(main(agent).calls) <= MAX_CALLS_IN_MEMORY * 5 // 4
        row = await agent.store.session("s1")
        assert row is not None
        view = await Views(agent.store, agent.monitor, agent.rules).view(row)
        messages = await agent.store.messages()
        return [view.trend, view.calls_left, view.threads, messages, await agent.store.calls("s1")]

    async def go() -> None:
        assert await lived(tmp_path / "few", MAX_CALLS_IN_MEMORY) == await lived(
            tmp_path / "all", ALL_CALLS
        )

    run(go())


def test_forecast_has_enough_calls() -> None:
    """As many calls are in memory as the pace of a thread is told by."""
    assert MAX_CALLS_IN_MEMORY >= PACE_CALLS


def test_copy_of_a_dropped_call_counts_once(tmp_path: Path) -> None:
    """A transcript that tells a call of long ago again has no call more."""

    async def go() -> None:
        agent = Agent(tmp_path, None, FEW_CALLS)
        for number in range(1, 41):
            line_of(agent, number, 1_000 * number)
            await agent.tell("tool")
        assert main(agent).dropped.count
        line_of(agent, 2, 2_000)
        await agent.tell("tool")
        assert (main(agent).call_count, agent.reading()) == (40, (40_000, "measured", 0))
        rows = await agent.store.calls("s1")
        assert [(row.call, row.seq) for row in rows] == [(f"msg_{n + 1}", n) for n in range(40)]
        line_of(agent, 41, 41_000)
        await agent.tell("tool")
        assert (main(agent).call_count, len(main(agent).calls)) == (41, FEW_CALLS)

    run(go())


def pushed(agent: Agent, event: AnyEvent, session: str = "sdk-1") -> Observation:
    """What a program pushes."""
    heard = agent.heard("pushed")
    return msgspec.structs.replace(
        heard, agent="sdk", session=session, transcript=None, events=(event,)
    )


def call_of(number: int, sent: int) -> Call:
    """A call of a program."""
    return Call(at=float(number), id=f"c{number}", usage=Usage(sent, 0, 0, 10), model=MODEL)


def test_pushed_calls_are_dropped(tmp_path: Path) -> None:
    """What a program pushed is in the store and in its figures; the last calls are in memory."""

    async def go() -> None:
        agent = Agent(tmp_path, None, FEW_CALLS)
        for number in range(1, 51):
            if number == 30:
                await agent.monitor.observe(pushed(agent, Compacted(at=30.0, trigger="auto")))
            await agent.monitor.observe(pushed(agent, call_of(number, 1_000 * number)))
        thread = main(agent, "sdk-1")
        assert (thread.call_count, len(thread.calls), thread.cycle) == (50, FEW_CALLS, 1)
        rows: list[CallRow] = await agent.store.calls("sdk-1")
        assert [row.seq for row in rows] == list(range(50))
        assert [row.cycle for row in rows] == [0] * 29 + [1] * 21
        await agent.monitor.observe(pushed(agent, Rewound(to="c2")))
        assert agent.monitor.reading("sdk-1").state == "unknown"

    run(go())


async def lives_on(agent: Agent, cycles: int, begin: int) -> int:
    """A session that goes on for so many cycles, with levels reached; the objects held then."""
    number = begin
    for _ in range(cycles):
        for step in range(8):
            number += 1
            line_of(agent, number, 20_000 * (step + 1))
            await agent.tell("tool")
            await agent.monitor.observe(pushed(agent, call_of(number, 20_000 * (step + 1))))
        await agent.tell("compacting")
        agent.boundary()
        await agent.tell("compacted")
        await agent.monitor.observe(pushed(agent, Compacted(at=float(number), trigger="auto")))
        agent.time += 300
    agent.around.signals.clear()  # the test's own
    return count_reachable(agent.monitor, agent.store)


def test_memory_does_not_grow_with_calls_and_cycles(tmp_path: Path) -> None:
    """After many cycles no more objects are held than after a few."""

    async def go() -> None:
        agent = Agent(tmp_path, None, FEW_CALLS)
        few = await lives_on(agent, 30, 0)
        many = await lives_on(agent, 30, 10_000)
        assert many <= few * 1.02

    run(go())


def test_no_lock_stays_behind(tmp_path: Path) -> None:
    """A session that nobody is at work on has no lock."""

    async def go() -> None:
        agent = Agent(tmp_path)
        without = count_reachable(agent.monitor, agent.store)
        for number in range(50):
            heard = msgspec.structs.replace(agent.heard("prompt"), session=f"s{number}")
            await agent.monitor.observe(heard)
        await agent.monitor.forget(agent.time + 1)
        assert count_reachable(agent.monitor, agent.store) <= without + 10

    run(go())


def test_one_at_a_time_for_each_session(tmp_path: Path) -> None:
    """Two things that are heard of a session at once are heard one after the other."""

    async def go() -> None:
        agent = Agent(tmp_path)
        monitor: Monitor = agent.monitor
        events = [pushed(agent, call_of(number, 1_000)) for number in range(20)]
        await asyncio.gather(*(monitor.observe(each) for each in events))
        assert len(await agent.store.calls("sdk-1")) == 20

    run(go())


def test_idle_session_is_released(tmp_path: Path) -> None:
    """A session that was idle for a day is in the store alone, and goes on as it was."""

    async def go() -> None:
        agent = Agent(tmp_path, None, FEW_CALLS)
        for number in range(1, 21):
            line_of(agent, number, 6_000 * number)
            await agent.tell("tool")
        agent.boundary()
        await agent.tell("compacted")
        agent.time += IDLE_SESSION_S - 10
        agent.monitor.release_idle()
        assert watched(agent).calls == 20
        agent.time += 20
        agent.monitor.release_idle()
        assert agent.monitor.state_of("s1") is None
        line_of(agent, 21, 120_000)
        await agent.tell("tool")
        assert (watched(agent).calls, agent.reading()) == (21, (120_000, "measured", 1))
        signals = [(row.kind, row.cycle, row.level) for row in await agent.store.signals()]
        assert signals == [("level", 0, 50.0), ("compacted", 0, 0.0), ("level", 1, 50.0)]
        assert [row.seq for row in await agent.store.calls("s1")] == list(range(21))

    run(go())


def test_session_in_a_pane_is_not_released(tmp_path: Path) -> None:
    """The store does not know where a session runs: messages are typed into that pane."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.tell("prompt", pane=Pane("/tmp/tmux", "%1"))
        agent.time += 2 * IDLE_SESSION_S
        agent.monitor.release_idle()
        assert watched(agent).pane is not None
        await agent.tell("ended")
        agent.time += 2 * IDLE_SESSION_S
        agent.monitor.release_idle()
        assert agent.monitor.state_of("s1") is None

    run(go())


def test_idle_subagents_are_released(tmp_path: Path) -> None:
    """However many subagents a session had, those that are done take no memory; rows stay."""

    async def works(agent: Agent, name: str, sent: int) -> None:
        path = tmp_path / f"agent-{name}.jsonl"
        usage = {"input_tokens": sent, "output_tokens": 10}
        message = {"id": f"{name}-{sent}", "model": MODEL, "usage": usage}
        record = {"type": "assistant", "isSidechain": True, "agentId": name, "sessionId": "s1"}
        with path.open("ab") as file:
            file.write(msgspec.json.encode({**record, "message": message}) + b"\n")
        found = Transcript("claude", str(path), agent.time, path.stat().st_size, "s1", name)
        await agent.tell("tool", thread=name, file=found)

    async def go() -> None:
        agent = Agent(tmp_path)
        line_of(agent, 1, 5_000)
        await agent.tell("tool")
        alone = count_reachable(agent.monitor, agent.store)
        for number in range(30):
            await works(agent, f"a{number}", 10_000)
        agent.time += IDLE_SUBAGENT_S + 60
        await works(agent, "a7", 20_000)
        agent.monitor.release_idle()
        assert set(watched(agent).folded.threads) == {MAIN, "a7"}
        assert count_reachable(agent.monitor, agent.store) < alone + 200
        await works(agent, "a3", 30_000)
        threads = {row.thread: (row.sent, row.calls) for row in await agent.store.threads("s1")}
        assert threads["a3"] == (30_000, 2)
        assert threads["a7"] == (20_000, 2)
        assert len(threads) == 31

    run(go())
