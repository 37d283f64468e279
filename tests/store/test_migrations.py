"""Migrations: from every version to the newest, in one transaction, by one process."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from brimline.inbox import Message
from brimline.store.base import (
    EventKey,
    ForgetSessions,
    PutCompaction,
    PutThread,
    QueueMessage,
    Store,
)
from brimline.store.failures import NewerStore
from brimline.store.rows import CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow
from brimline.store.sqlite.connections import connect
from brimline.store.sqlite.header import APPLICATION_ID
from brimline.store.sqlite.migrations import MIGRATIONS, Step, migrate
from brimline.store.sqlite.statements import SESSION_TABLES, SESSIONS

from .using import on

# A database of each version, as SQL.
RELEASED = sorted((Path(__file__).parent / "versions").glob("*.sql"))


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to an empty database."""
    made = connect(tmp_path / "x.db")
    yield made
    made.close()


def shape(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    """Every table and index with its SQL."""
    rows = connection.execute("SELECT name, coalesce(sql, '') FROM sqlite_master")
    return set(rows.fetchall())


def version(connection: sqlite3.Connection) -> int:
    """The version that a database says it has."""
    return connection.execute("PRAGMA user_version").fetchone()[0]


def test_there_is_a_database_of_each_version() -> None:
    """Each version has its database among the fixtures, so that none is forgotten."""
    assert [file.stem for file in RELEASED] == [str(n + 1) for n in range(len(MIGRATIONS))]


@pytest.mark.parametrize("file", RELEASED, ids=lambda file: file.stem)
def test_from_a_released_version(file: Path, path: Path) -> None:
    """What an older Brimline wrote is there when a newer one opens it."""
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
        assert await store.write([EventKey("e", 9.0)]) == [False]

    on(path, look)


@pytest.mark.parametrize("file", RELEASED, ids=lambda file: file.stem)
def test_writing_to_a_released_version(file: Path, path: Path) -> None:
    """What a newer Brimline can write is written to what an older one made; numbers go on."""
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
        assert [(one.id, one.order) for one in await store.pending_messages("s")] == [("m2", 2)]
        assert [one.id for one in await store.last_handoffs()] == ["h"]
        assert [id for _, id in await store.changes(mark)] == ["s"]
        assert await store.write([ForgetSessions(10.0), EventKey("e", 9.0)]) == [True, False]
        assert await store.messages() == await store.changes() == []

    on(path, use)


@pytest.mark.parametrize("file", RELEASED, ids=lambda file: file.stem)
def test_released_version_is_marked(file: Path, path: Path) -> None:
    """A store without the mark of our files is recognised by its tables, and gets the mark."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(file.read_text("utf-8"))

    async def nothing(store: Store) -> None:
        return None

    on(path, nothing)
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID
    assert [file.name for file in path.parent.iterdir()] == ["brimline.db"]


@pytest.mark.parametrize("first", range(len(MIGRATIONS) + 1))
def test_step_by_step(connection: sqlite3.Connection, first: int, tmp_path: Path) -> None:
    """From any version on the outcome is the same."""
    migrate(connection, "x", MIGRATIONS[:first])
    assert version(connection) == first
    migrate(connection, "x")
    assert version(connection) == len(MIGRATIONS)
    other = connect(tmp_path / "y.db")
    migrate(other, "y")
    assert shape(connection) == shape(other)
    other.close()


def test_tables_have_a_column_for_each_field(connection: sqlite3.Connection) -> None:
    """What is written and what the schema has agree."""
    migrate(connection, "x")
    for table in (SESSIONS, *SESSION_TABLES):
        rows = connection.execute(f"PRAGMA table_info({table.name})")
        assert {row[1] for row in rows} - {"place"} == set(table.fields)


STEPS: tuple[Step, ...] = (
    ("CREATE TABLE one (a TEXT)",),
    ("CREATE TABLE two (a TEXT)", "INSERT INTO one VALUES ('x')"),
)


def test_step_that_fails(connection: sqlite3.Connection) -> None:
    """A step that fails leaves the database as it was, and the next try goes on from there."""
    migrate(connection, "x", STEPS[:1])
    before = shape(connection)
    with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"):
        migrate(connection, "x", (*STEPS, ("INSERT INTO nowhere VALUES (1)",)))
    assert (shape(connection), version(connection)) == (before, 1)
    assert not connection.in_transaction
    migrate(connection, "x", STEPS)
    assert connection.execute("SELECT a FROM one").fetchall() == [("x",)]


def test_newest_is_left_alone(connection: sqlite3.Connection, tmp_path: Path) -> None:
    """A database of the newest version is opened while somebody else writes to it."""
    migrate(connection, "x", STEPS)
    connection.execute("BEGIN IMMEDIATE")
    other = connect(tmp_path / "x.db")
    migrate(other, "x", STEPS)
    other.close()
    connection.execute("ROLLBACK")


def test_beyond_the_newest(connection: sqlite3.Connection) -> None:
    """A version that is not known is refused."""
    migrate(connection, "x", STEPS)
    with pytest.raises(NewerStore, match="expected a store of version 1 or older, found version 2"):
        migrate(connection, "x", STEPS[:1])
    assert not connection.in_transaction
