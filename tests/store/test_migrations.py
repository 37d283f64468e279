"""Migrations: from every version to the newest, in one transaction, by one process."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from brimline.context.inbox import Message
from brimline.errors import NewerStore
from brimline.store.base import (
    EventKeys,
    ForgetSessions,
    PutCompaction,
    PutThread,
    QueueMessage,
    Store,
)
from brimline.store.rows import CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow
from brimline.store.sqlite.connections import connect
from brimline.store.sqlite.migrations import MIGRATIONS, Step, migrate
from brimline.store.sqlite.quarantine import APPLICATION_ID
from brimline.store.sqlite.statements import SESSION_TABLES, SESSIONS

from .helpers import use_store

# A database of each version, as SQL.
RELEASED = sorted((Path(__file__).parent / "versions").glob("*.sql"), key=lambda f: int(f.stem))


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    opened = connect(tmp_path / "x.db")
    yield opened
    opened.close()


def shape(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    rows = connection.execute("SELECT name, coalesce(sql, '') FROM sqlite_master")
    return set(rows.fetchall())


def version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def test_every_version_has_a_fixture_database() -> None:
    assert [file.stem for file in RELEASED] == [str(n + 1) for n in range(len(MIGRATIONS))]


@pytest.mark.parametrize("file", RELEASED, ids=lambda file: file.stem)
def test_data_of_an_older_version_is_readable(file: Path, path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(file.read_text("utf-8"))

    async def look(store: Store) -> None:
        assert await store.session("s") == SessionRow("s", "claude", 9.5, "h", model="m")
        assert [row.cycle for row in await store.threads()] == [1]
        assert [row.output for row in await store.calls("s")] == [4]
        assert await store.signals() == [SignalRow("s", "main", 0, "level", 2.0, 50.0, "t")]
        text = Message("m", "s", "text", 2.0, 1, thread="main", cycle=0, state="cancelled")
        assert await store.messages() == [text]
        document = HandoffRow("h", "s", 3.0, "/h.md", "00", "text", "agent", 0, 7, used_at=4.0)
        assert await store.handoffs("s") == [document]
        assert [id for _, id in await store.changes()] == ["s"]
        assert await store.write([EventKeys(("e",), 9.0)]) == [False]

    use_store(path, look)


@pytest.mark.parametrize("file", RELEASED, ids=lambda file: file.stem)
def test_migrated_database_takes_new_writes_and_continues_numbering(file: Path, path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(file.read_text("utf-8"))
    row = ThreadRow("s", "main", 1, 3, "hook", "measured", model="m")
    ended = CompactionRow("s", "main", 5, 9.0, "auto", 100, 10)

    async def use(store: Store) -> None:
        ((mark, _),) = await store.changes()
        writes = [
            PutThread(row),
            PutCompaction(ended),
            QueueMessage(Message("m2", "s", "text", 9.0)),
        ]
        assert await store.write(writes) == [True] * 3
        assert await store.threads("s") == [row]
        assert (await store.compactions("s"))[-1] == ended
        assert [(queued.id, queued.order) for queued in await store.pending_messages("s")] == [
            ("m2", 2)
        ]
        assert [queued.id for queued in await store.last_handoffs()] == ["h"]
        assert [id for _, id in await store.changes(mark)] == ["s"]
        assert await store.write([ForgetSessions(10.0), EventKeys(("e",), 9.0)]) == [True, False]
        assert await store.messages() == await store.changes() == []

    use_store(path, use)


@pytest.mark.parametrize("file", RELEASED, ids=lambda file: file.stem)
def test_unmarked_store_is_recognised_by_its_tables_and_marked(file: Path, path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(file.read_text("utf-8"))

    async def nothing(store: Store) -> None:
        return None

    use_store(path, nothing)
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID
    assert [file.name for file in path.parent.iterdir()] == ["brimline.db"]


@pytest.mark.parametrize("first", range(len(MIGRATIONS) + 1))
def test_migration_from_any_version_gives_the_same_schema(
    connection: sqlite3.Connection, first: int, tmp_path: Path
) -> None:
    migrate(connection, "x", MIGRATIONS[:first])
    assert version(connection) == first
    migrate(connection, "x")
    assert version(connection) == len(MIGRATIONS)
    second = connect(tmp_path / "y.db")
    migrate(second, "y")
    assert shape(connection) == shape(second)
    second.close()


def test_cost_of_a_session_of_an_older_version_is_that_of_its_calls(
    connection: sqlite3.Connection,
) -> None:
    migrate(connection, "x", MIGRATIONS[:16])
    insert = """INSERT INTO calls (session, thread, call, seq, cycle, input, cache_read,
        cache_write, output, cost) VALUES (?, 'main', ?, 0, 0, 1, 1, 1, 1, ?)"""
    calls = [("s", "a", 0.5), ("s", "b", 0.25), ("s", "c", None), ("free", "a", None)]
    connection.executemany(insert, calls)
    migrate(connection, "x")
    assert connection.execute("SELECT * FROM session_costs").fetchall() == [("s", 0.75, 2)]


def test_tables_have_a_column_for_each_field(connection: sqlite3.Connection) -> None:
    migrate(connection, "x")
    for table in (SESSIONS, *SESSION_TABLES):
        rows = connection.execute(f"PRAGMA table_info({table.name})")
        assert {row[1] for row in rows} - {"place", "mark"} == set(table.fields)


STEPS: tuple[Step, ...] = (
    ("CREATE TABLE one (a TEXT)",),
    ("CREATE TABLE two (a TEXT)", "INSERT INTO one VALUES ('x')"),
)


def test_failed_migration_changes_nothing_and_can_be_repeated(
    connection: sqlite3.Connection,
) -> None:
    migrate(connection, "x", STEPS[:1])
    before = shape(connection)
    with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"):
        migrate(connection, "x", (*STEPS, ("INSERT INTO nowhere VALUES (1)",)))
    assert (shape(connection), version(connection)) == (before, 1)
    assert not connection.in_transaction
    migrate(connection, "x", STEPS)
    assert connection.execute("SELECT a FROM one").fetchall() == [("x",)]


def test_newest_version_opens_while_another_process_writes(
    connection: sqlite3.Connection, tmp_path: Path
) -> None:
    migrate(connection, "x", STEPS)
    connection.execute("BEGIN IMMEDIATE")
    second = connect(tmp_path / "x.db")
    migrate(second, "x", STEPS)
    second.close()
    connection.execute("ROLLBACK")


def test_newer_version_is_refused(connection: sqlite3.Connection) -> None:
    migrate(connection, "x", STEPS)
    with pytest.raises(NewerStore, match="expected a store of version 1 or older, found version 2"):
        migrate(connection, "x", STEPS[:1])
    assert not connection.in_transaction
