"""The memory of a session does not grow with its calls, and readings do not depend on that."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from brimline.agents.observations import Observation, Pane
from brimline.agents.transcripts.source import Transcript
from brimline.api.views import Views
from brimline.context.events import MAIN, AnyEvent, Call, Compacted, Rewound
from brimline.context.forecast import PACE_CALLS
from brimline.context.tracker import Thread
from brimline.context.usage import Usage
from brimline.monitor.monitor import MAX_CALLS_IN_MEMORY, Monitor
from brimline.monitor.session_state import SessionState
from brimline.monitor.session_table import IDLE_SESSION_S, IDLE_SUBAGENT_S
from brimline.store.rows import CallRow
from hypothesis_examples import examples
from object_graph import count_reachable

from .agent import MODEL, Agent

ALL_CALLS = 1_000_000
FEW_CALLS = 3


def state_of(agent: Agent, session: str = "s1") -> SessionState:
    state = agent.monitor.state_of(session)
    assert state is not None
    return state


def main_thread(agent: Agent, session: str = "s1") -> Thread:
    return state_of(agent, session).folded.threads[MAIN]


def write_call(agent: Agent, number: int, sent: int, output: int = 10) -> None:
    """Append a call whose timestamp is its number."""
    usage = {"input_tokens": sent, "output_tokens": output}
    message = {"id": f"msg_{number}", "model": MODEL, "usage": usage}
    at = f"2026-11-15T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000Z"
    agent.write_record(type="assistant", timestamp=at, message=message)


async def stored_rows(agent: Agent) -> list[object]:
    """Return all rows without the forecast of calls left, which needs more calls than a few."""
    store, session = agent.store, agent.session
    messages = [msgspec.structs.replace(m, text="") for m in await store.messages()]
    signals = [msgspec.structs.replace(s, text="") for s in await store.signals()]
    threads = [msgspec.structs.replace(t, calls_left=None) for t in await store.threads()]
    return [
        threads, await store.calls(session), await store.compactions(), signals, messages
    ]  # fmt: skip


STEPS = st.one_of(
    st.tuples(st.just("calls"), st.integers(1, 9), st.integers(1_000, 220_000)),
    st.tuples(st.just("calls"), st.integers(1, 9), st.integers(1_000, 220_000)),
    st.tuples(st.just("copy"), st.integers(0, FEW_CALLS - 1), st.integers(1, 900)),
    st.tuples(st.just("old copy"), st.integers(1, 30), st.integers(1, 900)),
    st.tuples(st.just("compaction"), st.just(0), st.just(0)),
    st.tuples(st.just("restart"), st.just(0), st.just(0)),
)


async def run_steps(agent: Agent, steps: Sequence[tuple[str, int, int]]) -> list[list[object]]:
    """Run steps with a hook after each; return the reading and rows after each."""
    snapshots: list[list[object]] = []
    sents: list[int] = []
    for what, number, size in steps:
        if what == "calls":
            for _ in range(number):
                sents.append(size + 100 * len(sents))
                write_call(agent, len(sents), sents[-1])
                await agent.observe("tool")
        elif what == "copy" and number < len(sents):
            write_call(agent, len(sents) - number, sents[-1 - number], size)
        elif what == "old copy" and number <= len(sents):
            write_call(agent, number, sents[number - 1], 10)
        elif what == "compaction":
            agent.boundary()
        elif what == "restart":
            agent.new_monitor()
        await agent.observe("prompt")
        snapshots.append(
            [agent.monitor.reading("s1"), state_of(agent).first_call_at, *await stored_rows(agent)]
        )
    return snapshots


async def test_files_are_merged_again_only_if_calls_were_dropped(tmp_path: Path) -> None:
    """Merging all threads of a session after each hook would take long."""
    agent = Agent(tmp_path, None, ALL_CALLS)
    for number in range(1, 11):
        write_call(agent, number, 20_000)
    await agent.observe("tool")
    files = state_of(agent).files
    before = files.session
    files.drop_stored_calls(keep=10)
    assert files.session is before
    files.drop_stored_calls(keep=FEW_CALLS)
    assert len(files.session.threads[MAIN].calls) < 10


@examples(50)
@given(st.lists(STEPS, min_size=1, max_size=12))
@example([("compaction", 0, 0), ("compaction", 0, 0), ("calls", 5, 1_000)])  # a loop
def test_readings_and_rows_do_not_depend_on_the_calls_in_memory(
    steps: list[tuple[str, int, int]],
) -> None:
    outcomes: list[list[list[object]]] = []
    for max_calls in (ALL_CALLS, FEW_CALLS):
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(asyncio.run(run_steps(Agent(Path(folder), None, max_calls), steps)))
    assert outcomes[1] == outcomes[0]


@pytest.mark.slow
async def test_forecast_trend_and_texts_do_not_depend_on_the_calls_in_memory(
    tmp_path: Path,
) -> None:
    async def outcome(folder: Path, max_calls: int) -> list[object]:
        folder.mkdir()
        agent = Agent(folder, None, max_calls)
        for number in range(1, 451):
            write_call(agent, number, 10_000 + 350 * (number % 300) + number % 7)
            if number == 100:
                agent.boundary()
            await agent.observe("tool")
        if max_calls == MAX_CALLS_IN_MEMORY:
            assert len(main_thread(agent).calls) <= MAX_CALLS_IN_MEMORY * 5 // 4
        row = await agent.store.session("s1")
        assert row is not None
        view = await Views(agent.store, agent.monitor, agent.rules).view(row)
        messages = await agent.store.messages()
        return [view.trend, view.calls_left, view.threads, messages, await agent.store.calls("s1")]

    assert await outcome(tmp_path / "few", MAX_CALLS_IN_MEMORY) == await outcome(
        tmp_path / "all", ALL_CALLS
    )


def test_memory_has_as_many_calls_as_the_forecast_needs() -> None:
    assert MAX_CALLS_IN_MEMORY >= PACE_CALLS


async def test_copy_of_a_call_dropped_from_memory_counts_once(tmp_path: Path) -> None:
    agent = Agent(tmp_path, None, FEW_CALLS)
    for number in range(1, 41):
        write_call(agent, number, 1_000 * number)
        await agent.observe("tool")
    assert main_thread(agent).dropped.count
    write_call(agent, 2, 2_000)
    await agent.observe("tool")
    assert (main_thread(agent).call_count, agent.reading()) == (40, (40_000, "measured", 0))
    rows = await agent.store.calls("s1")
    assert [(row.call, row.seq) for row in rows] == [(f"msg_{n + 1}", n) for n in range(40)]
    write_call(agent, 41, 41_000)
    await agent.observe("tool")
    assert (main_thread(agent).call_count, len(main_thread(agent).calls)) == (41, FEW_CALLS)


def push(agent: Agent, event: AnyEvent, session: str = "sdk-1") -> Observation:
    observation = agent.observation("pushed")
    return msgspec.structs.replace(
        observation, agent="sdk", session=session, transcript=None, events=(event,)
    )


def call(number: int, sent: int) -> Call:
    return Call(at=float(number), id=f"c{number}", usage=Usage(sent, 0, 0, 10), model=MODEL)


async def test_old_pushed_calls_stay_in_the_store_but_not_in_memory(tmp_path: Path) -> None:
    agent = Agent(tmp_path, None, FEW_CALLS)
    for number in range(1, 51):
        if number == 30:
            await agent.monitor.observe(push(agent, Compacted(at=30.0, trigger="auto")))
        await agent.monitor.observe(push(agent, call(number, 1_000 * number)))
    thread = main_thread(agent, "sdk-1")
    assert (thread.call_count, len(thread.calls), thread.cycle) == (50, FEW_CALLS, 1)
    rows: list[CallRow] = await agent.store.calls("sdk-1")
    assert [row.seq for row in rows] == list(range(50))
    assert [row.cycle for row in rows] == [0] * 29 + [1] * 21
    await agent.monitor.observe(push(agent, Rewound(to="c2")))
    assert agent.monitor.reading("sdk-1").state == "unknown"


async def run_cycles(agent: Agent, cycles: int, begin: int) -> int:
    """Run cycles in which levels are reached; return the number of objects in memory."""
    number = begin
    for _ in range(cycles):
        for step in range(8):
            number += 1
            write_call(agent, number, 20_000 * (step + 1))
            await agent.observe("tool")
            await agent.monitor.observe(push(agent, call(number, 20_000 * (step + 1))))
        await agent.observe("compacting")
        agent.boundary()
        await agent.observe("compacted")
        await agent.monitor.observe(push(agent, Compacted(at=float(number), trigger="auto")))
        agent.time += 300
    agent.environment.signals.clear()  # the test's own
    return count_reachable(agent.monitor, agent.store)


@pytest.mark.slow
async def test_memory_does_not_grow_with_calls_and_cycles(tmp_path: Path) -> None:
    agent = Agent(tmp_path, None, FEW_CALLS)
    few = await run_cycles(agent, 30, 0)
    many = await run_cycles(agent, 30, 10_000)
    assert many <= few * 1.03  # integers above 256 are objects of their own


async def test_forgotten_sessions_leave_no_lock(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    without = count_reachable(agent.monitor, agent.store)
    for number in range(50):
        observation = msgspec.structs.replace(agent.observation("prompt"), session=f"s{number}")
        await agent.monitor.observe(observation)
    await agent.monitor.forget(agent.time + 1)
    assert count_reachable(agent.monitor, agent.store) <= without + 10


async def test_concurrent_observations_of_a_session_lose_no_call(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    monitor: Monitor = agent.monitor
    events = [push(agent, call(number, 1_000)) for number in range(20)]
    await asyncio.gather(*(monitor.observe(each) for each in events))
    assert len(await agent.store.calls("sdk-1")) == 20


async def test_session_released_after_a_day_continues_from_the_store(tmp_path: Path) -> None:
    agent = Agent(tmp_path, None, FEW_CALLS)
    for number in range(1, 21):
        write_call(agent, number, 6_000 * number)
        await agent.observe("tool")
    agent.boundary()
    await agent.observe("compacted")
    agent.time += IDLE_SESSION_S - 10
    agent.monitor.release_idle()
    assert state_of(agent).calls == 20
    agent.time += 20
    agent.monitor.release_idle()
    assert agent.monitor.state_of("s1") is None
    write_call(agent, 21, 120_000)
    await agent.observe("tool")
    assert (state_of(agent).calls, agent.reading()) == (21, (120_000, "measured", 1))
    signals = [(row.kind, row.cycle, row.level) for row in await agent.store.signals()]
    assert signals == [("level", 0, 50.0), ("compacted", 0, 0.0), ("level", 1, 50.0)]
    assert [row.seq for row in await agent.store.calls("s1")] == list(range(21))


async def test_session_in_a_pane_is_not_released(tmp_path: Path) -> None:
    """Only memory has the pane into which messages are typed."""
    agent = Agent(tmp_path)
    await agent.observe("prompt", pane=Pane("/tmp/tmux", "%1"))
    agent.time += 2 * IDLE_SESSION_S
    agent.monitor.release_idle()
    assert state_of(agent).pane is not None
    await agent.observe("ended")
    agent.time += 2 * IDLE_SESSION_S
    agent.monitor.release_idle()
    assert agent.monitor.state_of("s1") is None


async def test_idle_subagents_are_released_and_their_rows_stay(tmp_path: Path) -> None:
    async def works(agent: Agent, name: str, sent: int) -> None:
        path = tmp_path / f"agent-{name}.jsonl"
        usage = {"input_tokens": sent, "output_tokens": 10}
        message = {"id": f"{name}-{sent}", "model": MODEL, "usage": usage}
        record = {"type": "assistant", "isSidechain": True, "agentId": name, "sessionId": "s1"}
        with path.open("ab") as file:
            file.write(msgspec.json.encode({**record, "message": message}) + b"\n")
        transcript = Transcript("claude", str(path), agent.time, path.stat().st_size, "s1", name)
        await agent.observe("tool", thread=name, file=transcript)

    agent = Agent(tmp_path)
    write_call(agent, 1, 5_000)
    await agent.observe("tool")
    alone = count_reachable(agent.monitor, agent.store)
    for number in range(30):
        await works(agent, f"a{number}", 10_000)
    agent.time += IDLE_SUBAGENT_S + 60
    await works(agent, "a7", 20_000)
    agent.monitor.release_idle()
    assert set(state_of(agent).folded.threads) == {MAIN, "a7"}
    assert count_reachable(agent.monitor, agent.store) < alone + 200
    await works(agent, "a3", 30_000)
    threads = {row.thread: (row.sent, row.calls) for row in await agent.store.threads("s1")}
    assert threads["a3"] == (30_000, 2)
    assert threads["a7"] == (20_000, 2)
    assert len(threads) == 31
