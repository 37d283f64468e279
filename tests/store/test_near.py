"""What is done in the event loop's own thread: it never waits, the rest is left to the thread."""

import asyncio
import sqlite3
from collections.abc import Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from brimline.store.base import (
    EventKey,
    ForgetSessions,
    PutCall,
    PutSession,
    PutThread,
    QueueMessage,
    Store,
    Write,
)
from brimline.store.sqlite import queries as query
from brimline.store.sqlite.connections import connect, prepare
from brimline.store.sqlite.near import FOLDED, IN_A_ROW, LIGHT, SMALL, Near, never_wait
from brimline.store.sqlite.writer import WEIGHTY
from brimline.testing.store.suite import call, fire, message, session, thread

from .using import on

T = TypeVar("T")


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that does not wait, to a new store's file."""
    prepare(path)
    made = connect(path)
    never_wait(made)
    yield made
    made.close()


def put(number: int) -> list[Write]:
    """A list as a hook's is."""
    return [EventKey(str(number), 1.0), PutSession(session(seen_at=number))]


def test_light_writes_are_carried_out(connection: sqlite3.Connection) -> None:
    """What is light is kept at once, each list wholly, and an event has its effect once."""
    near = Near(connection)
    assert near.write(put(1)) == [True, True]
    assert near.write(put(1)) == [False, False]
    assert near.read(query.SESSION, "s") == [session(seen_at=1)]
    assert not connection.in_transaction


@pytest.mark.parametrize(
    "writes",
    [
        [fire("m")],
        [PutCall(call("c", 1)), QueueMessage(message("m"))],
        [ForgetSessions(9.0)],
        [PutCall(call(str(number), number)) for number in range(SMALL + 1)],
        [PutCall(call("c", 1)), PutCall(call("d", 2**63))],
        [PutCall(call("c", 1)), PutSession(session(title="\ud800"))],
    ],
    ids=["weighty", "weighty beside light", "forget", "many", "too large", "no text"],
)
def test_what_is_left_to_the_thread(connection: sqlite3.Connection, writes: list[Write]) -> None:
    """What is weighty, large or cannot be kept is left to the thread, and nothing of it is kept."""
    assert Near(connection).write(writes) is None
    assert not connection.in_transaction
    assert query.CALLS(connection, "s") == []


def test_what_outlives_a_power_cut_is_never_light() -> None:
    """No kind of write is both light and weighty."""
    assert LIGHT.isdisjoint(WEIGHTY)


def test_never_waits(path: Path, connection: sqlite3.Connection) -> None:
    """While another writes nothing is written, and reading goes on."""
    near, other = Near(connection), connect(path)
    assert near.write([PutThread(thread(0, 0))]) == [True]
    other.execute("BEGIN IMMEDIATE")
    other.execute("DELETE FROM threads")
    assert near.write(put(1)) is None
    assert near.read(query.THREADS, "s") == [thread(0, 0)]
    other.execute("COMMIT")
    other.close()
    assert near.write(put(1)) == [True, True]
    assert near.read(query.THREADS, "s") == []


@pytest.mark.parametrize(
    ("setting", "wanted"), [("busy_timeout", 0), ("synchronous", 1), ("wal_autocheckpoint", 0)]
)
def test_neither_locks_nor_the_disk(
    connection: sqlite3.Connection, setting: str, wanted: int
) -> None:
    """No write waits for a lock (busy_timeout), nor for the disk (NORMAL, and no folding in)."""
    assert connection.execute(f"PRAGMA {setting}").fetchone() == (wanted,)


def test_reading_that_fails(connection: sqlite3.Connection) -> None:
    """A read that fails is left to the thread, which tells why."""
    connection.execute("ALTER TABLE threads RENAME TO gone")
    assert Near(connection).read(query.THREADS, "s") is None


def test_bursts_end(connection: sqlite3.Connection) -> None:
    """Whoever asks without end leaves the thread its turn, and with it everybody else."""
    reading, writing = Near(connection, burst=60.0), Near(connection, burst=60.0)
    assert [reading.read(query.SESSION, "s") for _ in range(IN_A_ROW)].count(None) == 1
    assert [writing.write(put(number)) for number in range(IN_A_ROW)].count(None) == 1


def test_log_is_folded_in_whoever_reads_between(connection: sqlite3.Connection) -> None:
    """One write of many is the thread's, with any number of reads between them."""
    near = Near(connection, burst=0.0)
    outcomes: list[object] = []
    for number in range(2 * FOLDED):
        outcomes.append(near.write(put(number)))
        assert near.read(query.SESSION, "s") is not None
    assert outcomes.count(None) == 2


def test_log_does_not_grow(path: Path) -> None:
    """However much is written, the log beside the file stays small."""

    async def write(store: Store) -> int:
        for number in range(2_500):
            await store.write(put(number))
        return path.with_name(f"{path.name}-wal").stat().st_size

    # All of it would be more than 40 MB.
    assert on(path, write) < 12_000_000


def test_order_is_kept_beside_the_thread(path: Path) -> None:
    """A light list that is handed in after a weighty one is carried out after it."""

    async def use(store: Store) -> None:
        weighty: list[Write] = [QueueMessage(message("m")), EventKey("e", 1.0)]
        light: list[Write] = [EventKey("e", 1.0), PutSession(session())]
        effects = await asyncio.gather(store.write(weighty), store.write(light))
        assert list(effects) == [[True, True], [False, False]]

    on(path, use)


def test_loop_goes_on_while_another_writes_for_long(path: Path) -> None:
    """Light writes wait in the thread while another process writes; the loop and reads go on."""

    async def use(store: Store) -> list[list[bool]]:
        await store.write([PutThread(thread(0, 0))])
        with closing(connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            tasks = [asyncio.create_task(store.write(put(number))) for number in range(20)]
            for _ in range(20):
                await asyncio.sleep(0.001)
                assert await store.threads("s") == [thread(0, 0)]
            assert not any(task.done() for task in tasks)
            other.execute("COMMIT")
        return await asyncio.gather(*tasks)

    assert on(path, use) == [[True, True]] * 20


def at_once(answer: Coroutine[object, object, T]) -> T:
    """An answer that is given without a turn of the event loop."""
    with pytest.raises(StopIteration) as given:
        answer.send(None)
    return given.value.value


def test_a_hook_waits_for_no_thread(path: Path) -> None:
    """What a hook writes and reads of its session is done where it is asked."""

    async def use(store: Store) -> None:
        assert at_once(store.write(put(1))) == [True, True]
        assert at_once(store.session("s")) == session(seen_at=1)
        assert at_once(store.threads("s")) == at_once(store.pending_messages("s")) == []
        assert at_once(store.last_handoffs("s")) == []

    on(path, use)
