"""Calls that a fork copied, and what is spent beside calls: each is in the sums once."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from brimline.agents.observations import Observation
from brimline.context.events import AnyEvent, Call, Spent
from brimline.context.usage import Usage
from brimline.store.rows import CallRow
from brimline.store.sqlite import MemoryStore

from .agent import MODEL, Agent

SENT = Usage(1_000_000, 0, 0, 0)  # costs $3 of the model, and $6 if it is one prompt


def counted(rows: Sequence[CallRow]) -> list[str]:
    return [row.call for row in rows if row.counted]


def total(rows: Sequence[CallRow]) -> float:
    return sum(row.cost or 0.0 for row in rows)


class Fork(Agent):
    """A session that begins with the calls of another one."""

    def __init__(self, original: Agent, folder: Path) -> None:
        super().__init__(folder, original.store, original.max_calls)
        self.session = "fork"
        self.path.write_bytes(original.path.read_bytes())
        for _ in range(self.path.read_text().count("msg_")):
            next(self._numbers)


@pytest.mark.parametrize("max_calls", [2, 128])
async def test_copied_calls_are_stored_without_cost(tmp_path: Path, max_calls: int) -> None:
    original = Agent(tmp_path, MemoryStore(), max_calls)
    for sent in range(20_000, 70_000, 10_000):
        original.call(sent)
    await original.observe("prompt")
    (tmp_path / "fork").mkdir()
    fork = Fork(original, tmp_path / "fork")
    await fork.observe("prompt")
    fork.call(70_000)
    await fork.observe("stopped")
    for _ in range(2):  # the second time after a restart, which reads both files again
        rows = await fork.store.calls("fork")
        assert len(rows) == 6
        assert counted(rows) == ["msg_6"]
        assert total(rows) == rows[-1].cost
        assert len(counted(await fork.store.calls("s1"))) == 5
        forks = {row.id: row.is_fork for row in await fork.store.sessions()}
        assert forks == {"s1": False, "fork": True}
        fork.new_monitor()
        original.new_monitor()
        await fork.observe("prompt")
        await original.observe("prompt")


async def test_copied_calls_are_counted_when_their_original_is_forgotten(tmp_path: Path) -> None:
    original = Agent(tmp_path)
    original.call(20_000)
    await original.observe("prompt")
    (tmp_path / "fork").mkdir()
    fork = Fork(original, tmp_path / "fork")
    fork.time += 10
    await fork.observe("prompt")
    assert counted(await fork.store.calls("fork")) == []
    await fork.monitor.forget(fork.time)
    fork.new_monitor()
    await fork.observe("prompt")
    assert counted(await fork.store.calls("fork")) == ["msg_1"]


class Program(Agent):
    """Pushes its events; its ids are unique in its own session only."""

    async def push(self, session: str, *events: AnyEvent) -> list[CallRow]:
        self.time += 1
        id = f"event-{next(self._ids)}"
        observation = Observation(id, "my-agent", session, "pushed", self.time, events=events)
        await self.monitor.observe(observation)
        return await self.store.calls(session)


def call(id: str, thread: str = "main") -> Call:
    return Call(at=1.0, id=id, usage=Usage(100_000, 0, 0, 0), model=MODEL, thread=thread)


async def test_calls_of_programs_with_the_same_ids_are_no_copies(tmp_path: Path) -> None:
    program = Program(tmp_path)
    assert counted(await program.push("a", call("1"))) == ["1"]
    assert counted(await program.push("b", call("1"))) == ["1"]


async def test_spendings_are_in_the_cost_once_and_survive_a_restart(tmp_path: Path) -> None:
    program = Program(tmp_path)
    of_call = Spent(at=1.0, id="1", usage=SENT, model="no-such-model", cost=0.5)
    rows = await program.push("s", of_call, call("1"))
    assert [(row.usage, row.cost) for row in rows] == [
        (Usage(100_000, 0, 0, 0), pytest.approx(0.3 + 0.5)),
        (SENT, 0.0),  # its cost is in the call's row
    ]
    with_id = Spent(at=2.0, id="summary", usage=SENT, model="no-such-model", cost=0.25)
    without = Spent(at=3.0, usage=SENT)
    rows = await program.push("s", with_id, without)
    assert total(rows) == pytest.approx(0.8 + 0.25 + 3)
    for times in range(2, 4):
        program.new_monitor()
        rows = await program.push("s", without, with_id)
        assert total(rows) == pytest.approx(0.8 + 0.25 + 3 * times)
        assert counted(rows) == ["1"]
        threads = await program.store.threads("s")
        assert [row.thread for row in threads] == ["main"]


async def test_spendings_of_calls_that_left_the_memory_are_not_stored_again(tmp_path: Path) -> None:
    program = Program(tmp_path, max_calls=2)
    for number in range(8):
        spent = Spent(at=1.0, id=str(number), usage=SENT, model="no-such-model", cost=0.5)
        await program.push("s", spent, call(str(number)))
    rows = await program.store.calls("s")
    assert len(rows) == 8 + 8
    assert total(rows) == pytest.approx(8 * 0.8)
