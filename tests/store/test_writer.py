"""The writer thread: batched, durable, and each list wholly or not at all."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.context.inbox import Message
from brimline.errors import StoreFailed
from brimline.store.base import (
    CancelMessages,
    EventKeys,
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
from brimline.store.sqlite import SqliteStore
from brimline.store.sqlite import statements as sql
from brimline.store.sqlite.connections import connect, prepare
from brimline.store.sqlite.writer import MAX_EVENT_KEYS, PRUNE_EVERY, Writer
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

from .helpers import use_store

LIGHT: list[Write] = [
    PutSession(session()),
    PutThread(thread(0, 0)),
    PutCall(call("c", 1)),
    PutCompaction(compaction(before=9)),
    EventKeys(("e",), 1.0),
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
    prepare(path)
    opened = connect(path)
    yield opened
    opened.close()


@pytest.mark.parametrize("write", [*LIGHT, *WEIGHTY], ids=lambda write: type(write).__name__)
def test_important_writes_use_full_and_others_normal_synchronisation(
    path: Path, connection: sqlite3.Connection, write: Write
) -> None:
    writer = Writer(path, connection)
    full, normal = 2, 1
    for writes in ([write], [fire("x")], [write], [LIGHT[0]], [write], [LIGHT[0], write]):
        writer.write_all([writes])
        (level,) = connection.execute("PRAGMA synchronous").fetchone()
        assert level == (full if set(map(type, writes)) & set(map(type, WEIGHTY)) else normal)


def test_waiting_lists_are_one_transaction_with_one_mark(
    path: Path, connection: sqlite3.Connection
) -> None:
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
    assert use_store(path, write) <= 2


@pytest.mark.parametrize("write", REFUSED, ids=lambda write: type(write).__name__)
def test_list_with_an_invalid_value_has_no_effect_and_others_do(path: Path, write: Write) -> None:
    async def use(store: Store) -> None:
        good = [[QueueMessage(message(f"good {number}"))] for number in range(4)]
        bad: list[Write] = [EventKeys(("e",), 1.0), QueueMessage(message("bad")), write]
        lists = [*good[:2], bad, *good[2:]]
        outcomes = await asyncio.gather(*map(store.write, lists), return_exceptions=True)
        assert [outcome for outcome in outcomes if outcome != [True]] == [outcomes[2]]
        assert isinstance(outcomes[2], StoreFailed)
        assert outcomes[2].place == str(path)
        assert set(await states(store)) == {f"good {number}" for number in range(4)}
        assert await store.write([EventKeys(("e",), 1.0), QueueMessage(message("later"))]) == [
            True,
            True,
        ]

    use_store(path, use)


def test_failed_list_leaves_no_trace_among_the_changes(
    path: Path, connection: sqlite3.Connection
) -> None:
    good, second = PutSession(session("good", 1.0)), PutSession(session("other", 9.0))
    lists = [[good], [second, ForgetSessions(5.0), REFUSED[0]], [PutCall(call("c", 1))]]
    outcomes = Writer(path, connection).write_all(lists)
    assert [isinstance(outcome, StoreFailed) for outcome in outcomes] == [False, True, False]
    assert [id for _, id in sql.changes(connection, 0)] == ["good", "s"]


def test_locked_file_is_an_error_until_it_is_free(
    path: Path, connection: sqlite3.Connection
) -> None:
    locker = connect(path)
    connection.execute("PRAGMA busy_timeout = 0")
    locker.execute("BEGIN IMMEDIATE")
    writer = Writer(path, connection)
    (outcome,) = writer.write_all([[fire("m")]])
    assert isinstance(outcome, StoreFailed)
    assert str(outcome).endswith("Nothing was written: another program keeps the file locked.")
    locker.execute("ROLLBACK")
    locker.close()
    assert writer.write_all([[fire("m")]]) == [[True]]


def test_failed_transaction_stores_nothing_and_the_next_one_works(
    path: Path, connection: sqlite3.Connection
) -> None:
    writer = Writer(path, connection)
    connection.execute("ALTER TABLE calls RENAME TO gone")
    outcomes = writer.write_all([[fire("m")], [PutCall(call("c", 1))]])
    assert [type(outcome) for outcome in outcomes] == [StoreFailed] * 2
    connection.execute("ALTER TABLE gone RENAME TO calls")
    assert writer.write_all([[fire("m")], [PutCall(call("c", 1))]]) == [[True], [True]]


def test_number_of_remembered_events_is_bounded(path: Path, connection: sqlite3.Connection) -> None:
    writer = Writer(path, connection)
    writer.write_all([[EventKeys(("a",), 1.0)], [EventKeys(("b",), 1.0)]])
    last = MAX_EVENT_KEYS + PRUNE_EVERY
    connection.execute(f"UPDATE once SET place = {PRUNE_EVERY} WHERE key = 'a'")
    connection.execute(f"UPDATE once SET place = {last - PRUNE_EVERY} WHERE key = 'b'")
    for number in range(PRUNE_EVERY - 1):
        assert writer.write_all([[EventKeys((str(number),), 1.0)], [EventKeys(("a",), 1.0)]]) == [
            [True],
            [False],
        ]
    assert writer.write_all([[EventKeys(("c",), 1.0)], [EventKeys(("b",), 1.0)]]) == [
        [True],
        [False],
    ]
    keys = connection.execute("SELECT key FROM once ORDER BY place").fetchall()
    assert (keys[0], keys[-1], len(keys)) == (("b",), ("c",), PRUNE_EVERY + 1)


def test_cancelled_caller_does_not_affect_others(path: Path) -> None:
    async def use(store: Store) -> set[str]:
        tasks = [asyncio.create_task(store.write([QueueMessage(message(id))])) for id in "abc"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [outcomes[0], outcomes[2]] == [[True], [True]]
        assert isinstance(outcomes[1], asyncio.CancelledError)
        return set(await states(store))

    assert {"a", "c"} <= use_store(path, use)


async def test_close_finishes_pending_writes_and_refuses_new_ones(path: Path) -> None:
    store = await SqliteStore.open(path)
    tasks = [asyncio.create_task(store.write([QueueMessage(message(str(n)))])) for n in range(100)]
    await asyncio.sleep(0)
    await store.close()
    await store.close()
    assert await asyncio.gather(*tasks) == [[True]] * 100
    for late in (store.write([fire("m")]), store.messages()):
        with pytest.raises(StoreFailed, match="was closed"):
            await late


def test_acknowledged_writes_survive_an_exit_without_close(path: Path) -> None:
    async def use() -> SqliteStore:
        store = await SqliteStore.open(path)
        await store.write([QueueMessage(message("m"))])
        return store

    forgotten = asyncio.run(use())
    assert use_store(path, states) == {"m": "queued"}
    del forgotten
