"""The thread that writes: together, durably, and each list wholly or not at all."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.inbox import Message
from brimline.store.base import (
    CancelMessages,
    EventKey,
    ForgetSessions,
    MarkMessage,
    PutCall,
    PutCompaction,
    PutHandoff,
    PutSession,
    PutThread,
    QueueMessage,
    Store,
    UseHandoff,
    Write,
)
from brimline.store.failures import StoreFailed
from brimline.store.sqlite import SqliteStore
from brimline.store.sqlite import queries as query
from brimline.store.sqlite.apply import MAX_EVENT_KEYS, PRUNE_EVERY
from brimline.store.sqlite.connections import connect, prepare
from brimline.store.sqlite.writer import Writer
from brimline.testing.store.suite import (
    call,
    compaction,
    fire,
    handoff,
    message,
    session,
    states,
    thread,
)

from .using import on

LIGHT: list[Write] = [
    PutSession(session()),
    PutThread(thread(0, 0)),
    PutCall(call("c", 1)),
    PutCompaction(compaction(before=9)),
    EventKey("e", 1.0),
    ForgetSessions(9.0),
]
WEIGHTY: list[Write] = [
    fire("m"),
    QueueMessage(message("m2")),
    MarkMessage("m2", "handed", ("queued",), 1.0),
    CancelMessages("s", "main", 0),
    PutHandoff(handoff("h")),
    UseHandoff("h", 1.0),
]
REFUSED: list[Write] = [
    PutSession(session(title="\ud800")),
    PutCall(call("c", seq=2**63)),
    PutCompaction(compaction(before=2**63)),
    QueueMessage(Message("m", "s", "text", at=float("nan"))),
]


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a new store's file."""
    prepare(path)
    made = connect(path)
    yield made
    made.close()


@pytest.mark.parametrize("write", [*LIGHT, *WEIGHTY], ids=lambda write: type(write).__name__)
def test_durability(path: Path, connection: sqlite3.Connection, write: Write) -> None:
    """What must outlive a power cut is written with FULL, the rest with NORMAL."""
    writer = Writer(path, connection)
    full, normal = 2, 1
    for writes in ([write], [fire("x")], [write], [LIGHT[0]], [write], [LIGHT[0], write]):
        writer.write_all([writes])
        (level,) = connection.execute("PRAGMA synchronous").fetchone()
        assert level == (full if set(map(type, writes)) & set(map(type, WEIGHTY)) else normal)


def test_lists_that_wait_are_one_transaction(path: Path, connection: sqlite3.Connection) -> None:
    """What waits while another process writes is one transaction, with one mark."""

    async def write(store: Store) -> int:
        connection.execute("BEGIN IMMEDIATE")
        lists = [[PutCall(call(str(number), number))] for number in range(50)]
        tasks = [asyncio.create_task(store.write(writes)) for writes in lists]
        await asyncio.sleep(0)
        connection.execute("ROLLBACK")
        assert await asyncio.gather(*tasks) == [[True]] * 50
        ((mark, _),) = await store.changes()
        return mark

    # The thread may have begun with the first ones before the others were handed in.
    assert on(path, write) <= 2


@pytest.mark.parametrize("write", REFUSED, ids=lambda write: type(write).__name__)
def test_what_cannot_be_kept(path: Path, write: Write) -> None:
    """A list with a value that cannot be kept has no effect; those beside it have theirs."""

    async def use(store: Store) -> None:
        good = [[QueueMessage(message(f"good {number}"))] for number in range(4)]
        bad: list[Write] = [EventKey("e", 1.0), QueueMessage(message("bad")), write]
        lists = [*good[:2], bad, *good[2:]]
        outcomes = await asyncio.gather(*map(store.write, lists), return_exceptions=True)
        assert [outcome for outcome in outcomes if outcome != [True]] == [outcomes[2]]
        assert isinstance(outcomes[2], StoreFailed)
        assert outcomes[2].place == str(path)
        assert set(await states(store)) == {f"good {number}" for number in range(4)}
        assert await store.write([EventKey("e", 1.0), QueueMessage(message("later"))]) == [
            True,
            True,
        ]

    on(path, use)


def test_changes_of_a_list_that_failed(path: Path, connection: sqlite3.Connection) -> None:
    """What a list that failed would have changed, or forgotten, leaves no trace among changes."""
    good, other = PutSession(session("good", 1.0)), PutSession(session("other", 9.0))
    lists = [[good], [other, ForgetSessions(5.0), REFUSED[0]], [PutCall(call("c", 1))]]
    outcomes = Writer(path, connection).write_all(lists)
    assert [isinstance(outcome, StoreFailed) for outcome in outcomes] == [False, True, False]
    assert [id for _, id in query.changes(connection, 0)] == ["good", "s"]


def test_locked_by_somebody_else(path: Path, connection: sqlite3.Connection) -> None:
    """A file that stays locked is a clear error, and written to again when it is free."""
    other = connect(path)
    connection.execute("PRAGMA busy_timeout = 0")
    other.execute("BEGIN IMMEDIATE")
    writer = Writer(path, connection)
    (outcome,) = writer.write_all([[fire("m")]])
    assert isinstance(outcome, StoreFailed)
    assert str(outcome).endswith("Nothing was written: another program keeps the file locked.")
    other.execute("ROLLBACK")
    other.close()
    assert writer.write_all([[fire("m")]]) == [[True]]


def test_transaction_that_fails(path: Path, connection: sqlite3.Connection) -> None:
    """Where the transaction fails nothing of any list is kept, and the next one is carried out."""
    writer = Writer(path, connection)
    connection.execute("ALTER TABLE calls RENAME TO gone")
    outcomes = writer.write_all([[fire("m")], [PutCall(call("c", 1))]])
    assert [type(outcome) for outcome in outcomes] == [StoreFailed] * 2
    connection.execute("ALTER TABLE gone RENAME TO calls")
    assert writer.write_all([[fire("m")], [PutCall(call("c", 1))]]) == [[True], [True]]


def test_events_of_long_ago(path: Path, connection: sqlite3.Connection) -> None:
    """The last events are remembered, as many as are promised; the file does not grow for ever."""
    writer = Writer(path, connection)
    writer.write_all([[EventKey("a", 1.0)], [EventKey("b", 1.0)]])
    last = MAX_EVENT_KEYS + PRUNE_EVERY
    connection.execute(f"UPDATE once SET place = {PRUNE_EVERY} WHERE key = 'a'")
    connection.execute(f"UPDATE once SET place = {last - PRUNE_EVERY} WHERE key = 'b'")
    for number in range(PRUNE_EVERY - 1):
        assert writer.write_all([[EventKey(str(number), 1.0)], [EventKey("a", 1.0)]]) == [
            [True],
            [False],
        ]
    assert writer.write_all([[EventKey("c", 1.0)], [EventKey("b", 1.0)]]) == [[True], [False]]
    kept = connection.execute("SELECT key FROM once ORDER BY place").fetchall()
    assert (kept[0], kept[-1], len(kept)) == (("b",), ("c",), PRUNE_EVERY + 1)


def test_caller_that_does_not_wait(path: Path) -> None:
    """A caller that is cancelled harms nobody; what it handed in may be carried out."""

    async def use(store: Store) -> set[str]:
        tasks = [asyncio.create_task(store.write([QueueMessage(message(id))])) for id in "abc"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [outcomes[0], outcomes[2]] == [[True], [True]]
        assert isinstance(outcomes[1], asyncio.CancelledError)
        return set(await states(store))

    assert {"a", "c"} <= on(path, use)


def test_closing_finishes_what_waits(path: Path) -> None:
    """What was handed in before closing is carried out; afterwards nothing is taken."""

    async def use() -> None:
        store = await SqliteStore.open(path)
        tasks = [
            asyncio.create_task(store.write([QueueMessage(message(str(n)))])) for n in range(100)
        ]
        await asyncio.sleep(0)
        await store.close()
        await store.close()
        assert await asyncio.gather(*tasks) == [[True]] * 100
        for late in (store.write([fire("m")]), store.messages()):
            with pytest.raises(StoreFailed, match="was closed"):
                await late

    asyncio.run(use())


def test_loop_that_ended_first(path: Path) -> None:
    """A program that ends without closing the store loses nothing that was acknowledged."""

    async def use() -> SqliteStore:
        store = await SqliteStore.open(path)
        await store.write([QueueMessage(message("m"))])
        return store

    forgotten = asyncio.run(use())
    assert on(path, states) == {"m": "queued"}
    del forgotten
