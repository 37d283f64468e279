"""Damage to the store's file is detected, the file is kept, and the user is informed."""

import asyncio
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from brimline.errors import StoreFailed
from brimline.store.base import PutCall, QueueMessage, Store
from brimline.store.problems import (
    FILE_NAME,
    MAX_KEPT,
    SHOWN_FOR_S,
    StoreProblem,
    open_problems,
    report_problem,
)
from brimline.store.sqlite import SqliteStore
from brimline.store.sqlite.quarantine import APPLICATION_ID, HEADER_BYTES, inspect_header
from brimline.testing.store.suite import call, message

from .helpers import CHECK_BUDGET_S, use_store

T = TypeVar("T")


async def queue_messages(store: Store, first: int = 0) -> None:
    await store.write([QueueMessage(message(str(number))) for number in range(first, first + 10)])


async def count_messages(store: Store) -> int:
    return len(await store.messages())


def problems(path: Path) -> list[StoreProblem]:
    """The problems that a user is shown."""
    return open_problems(path.parent, time.time())


def only_problem(path: Path) -> StoreProblem:
    (problem,) = problems(path)
    return problem


def kept_file(problem: StoreProblem) -> Path:
    """The file that was set aside."""
    assert problem.kept is not None
    assert problem.kept in problem.what
    return Path(problem.kept)


def while_open(
    path: Path, use: Callable[[SqliteStore], Awaitable[T]], check_budget_s: float = CHECK_BUDGET_S
) -> T:
    """Use a store that was opened with this check budget, and close it."""

    async def run() -> T:
        store = await SqliteStore.open(path, check_budget_s)
        try:
            return await use(store)
        finally:
            await store.close()

    return asyncio.run(run())


# At start


def test_empty_file_is_reported_and_kept(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A crash or a full disk leaves a file of 0 bytes; that is no new store."""
    path.parent.mkdir()
    path.touch()
    with caplog.at_level(logging.WARNING, "brimline.store"):
        assert use_store(path, count_messages) == 0
    problem = only_problem(path)
    assert kept_file(problem).stat().st_size == 0
    assert "was empty (0 bytes)" in problem.what
    assert problem.what in caplog.text


MAGIC = b"SQLite format 3\0"


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (MAGIC.ljust(HEADER_BYTES, b"\0"), None),
        (MAGIC.ljust(HEADER_BYTES - 1, b"\0"), "was not a SQLite database"),
        (b"x" * HEADER_BYTES, "was not a SQLite database"),
        (b"", "was empty (0 bytes)"),
    ],
    ids=["whole", "cut off", "of another format", "empty"],
)
def test_header_that_is_not_whole_or_of_another_format_is_broken(
    header: bytes, reason: str | None
) -> None:
    assert inspect_header(header) == (reason and ("broken", reason))


def test_empty_file_with_a_log_keeps_both(path: Path) -> None:
    """The log may contain data: it is kept, and not applied to the new file."""
    path.parent.mkdir()
    path.touch()
    log = path.with_name("brimline.db-wal")
    log.write_bytes(b"data" * 100)
    assert use_store(path, count_messages) == 0
    moved = kept_file(only_problem(path))
    assert moved.with_name(f"{moved.name}-wal").read_bytes() == b"data" * 100


def test_log_without_its_database_is_not_applied_to_a_new_one(path: Path) -> None:
    """SQLite would write the pages of a log that was left over into the new database."""

    async def copy_log(store: Store) -> bytes:
        await queue_messages(store)
        return path.with_name("brimline.db-wal").read_bytes()

    log = use_store(path, copy_log)
    path.unlink()
    path.with_name("brimline.db-wal").write_bytes(log)
    assert use_store(path, count_messages) == 0
    assert kept_file(only_problem(path)).read_bytes() == log


def test_new_store_reports_nothing(path: Path) -> None:
    use_store(path, queue_messages)
    assert use_store(path, count_messages) == 10
    assert problems(path) == []
    assert not (path.parent / FILE_NAME).exists()


CREATE_ON_A_FULL_DISK = """
import asyncio, resource, signal, sys
from pathlib import Path
from brimline.errors import StoreFailed
from brimline.store.sqlite import SqliteStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
try:
    asyncio.run(SqliteStore.open(Path(sys.argv[1])))
except StoreFailed:
    print("failed")
"""


def test_store_that_could_not_be_created_leaves_no_empty_file(path: Path) -> None:
    """A store appears at its path when it is complete, so an empty file is always damage."""
    path.parent.mkdir()
    words = [sys.executable, "-c", CREATE_ON_A_FULL_DISK, str(path)]
    completed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert completed.stdout == "failed\n"
    assert list(path.parent.iterdir()) == []
    assert use_store(path, count_messages) == 0
    assert problems(path) == []


FOREIGN = {
    "marked": "PRAGMA application_id = 7; CREATE TABLE theirs (a)",
    "unmarked": "CREATE TABLE theirs (a)",
    "with a table of our name": "CREATE TABLE sessions (theirs)",
    "with a version": "PRAGMA user_version = 4; CREATE TABLE sessions (theirs)",
}


@pytest.mark.parametrize("script", FOREIGN.values(), ids=FOREIGN)
def test_database_of_another_program_is_not_changed(path: Path, script: str) -> None:
    """It is moved aside, and the user learns where it is and how to move it back."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    before = path.read_bytes()
    use_store(path, queue_messages)
    problem = only_problem(path)
    assert kept_file(problem).read_bytes() == before
    assert "another program" in problem.what
    assert f"mv {problem.kept}" in problem.advice
    assert use_store(path, count_messages) == 10


def test_log_of_another_program_is_moved_with_its_database(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute("PRAGMA journal_mode = WAL")
        foreign.execute("CREATE TABLE theirs (a)")
        foreign.execute("INSERT INTO theirs VALUES (1)")
        foreign.commit()
        use_store(path, count_messages)
        moved = kept_file(only_problem(path))
        with closing(sqlite3.connect(moved)) as connection:
            assert connection.execute("SELECT a FROM theirs").fetchall() == [(1,)]


def test_file_header_names_brimline(path: Path) -> None:
    use_store(path, count_messages)
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID == 0x4252494D


def invalid_text(data: bytes) -> bytes:
    """Break a text."""
    return data.replace(b"text of 3", b"te\xfft of 3")


def damaged_page(data: bytes) -> bytes:
    """Break a page in the middle."""
    middle = len(data) // 2 // 4_096 * 4_096
    return data[:middle] + b"\xff" * 4_096 + data[middle + 4_096 :]


def wrong_type(path: Path) -> None:
    """Put a text where a number belongs."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        change = "UPDATE sqlite_master SET sql = replace(sql, 'seq INTEGER', 'seq BLOB')"
        connection.execute(f"{change} WHERE name = 'calls'")
        connection.commit()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE calls SET seq = x'00' WHERE call = 'c3'")
        connection.execute("PRAGMA writable_schema = ON")
        change = "UPDATE sqlite_master SET sql = replace(sql, 'seq BLOB', 'seq INTEGER')"
        connection.execute(f"{change} WHERE name = 'calls'")
        connection.commit()


def fill(path: Path) -> None:
    """Make a store with messages and calls."""

    async def write(store: Store) -> None:
        await queue_messages(store)
        await store.write([PutCall(call(f"c{number}", number)) for number in range(500)])

    use_store(path, write)


def damage_text(path: Path) -> None:
    """Break a text in the file."""
    path.write_bytes(invalid_text(path.read_bytes()))


def damage_page(path: Path) -> None:
    """Break a page of the file."""
    path.write_bytes(damaged_page(path.read_bytes()))


def damage_free_list(path: Path) -> None:
    """Declare a page free that is in use; a later write would overwrite it."""
    data = path.read_bytes()
    path.write_bytes(data[:32] + b"\0\0\0\2" + b"\0\0\0\1" + data[40:])


def lose_index_entries(path: Path) -> None:
    """Delete rows without their entries in the indexes."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        query = "SELECT name, sql, rootpage FROM sqlite_master WHERE name = 'messages_of_session'"
        name, text, page = connection.execute(query).fetchone()
        connection.execute("DELETE FROM sqlite_master WHERE name = 'messages_of_session'")
        connection.commit()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM messages WHERE id = '3'")
        connection.execute("PRAGMA writable_schema = ON")
        values = ("index", name, "messages", page, text)
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", values)
        connection.commit()


CONTENT_DAMAGE = [damage_text, damage_page, wrong_type, damage_free_list]


@pytest.mark.parametrize("damage", CONTENT_DAMAGE)
def test_damaged_content_is_found_at_start(path: Path, damage: Callable[[Path], None]) -> None:
    fill(path)
    damage(path)
    before = path.read_bytes()
    assert use_store(path, count_messages) == 0
    problem = only_problem(path)
    assert kept_file(problem).read_bytes() == before
    assert "damaged" in problem.what


@pytest.mark.parametrize("damage", [*CONTENT_DAMAGE, lose_index_entries])
def test_damaged_content_is_found_in_the_background(
    path: Path, damage: Callable[[Path], None]
) -> None:
    """The start had no time to check the whole file."""
    fill(path)
    damage(path)

    async def check(store: SqliteStore) -> None:
        assert store.find_problem() is None
        await store.check_content()
        assert "damaged" in str(store.find_problem())
        with pytest.raises(StoreFailed, match="starts a new store") as caught:
            await store.write([QueueMessage(message("late"))])
        assert caught.value.hint

    while_open(path, check, check_budget_s=0.0)
    assert kept_file(only_problem(path)).exists()
    assert use_store(path, count_messages) == 0
    assert len(problems(path)) == 1


def test_intact_store_passes_the_check(path: Path) -> None:
    fill(path)

    async def check(store: SqliteStore) -> None:
        await store.check_content()
        assert store.find_problem() is None

    while_open(path, check)
    assert use_store(path, count_messages) == 10
    assert problems(path) == []


def test_check_ends_with_the_store(path: Path) -> None:
    """Closing does not wait for the whole check, and leaves nothing open."""
    fill(path)

    async def begin(store: SqliteStore) -> None:
        checking = asyncio.create_task(store.check_content())
        await asyncio.sleep(0)
        await store.close()
        await checking

    while_open(path, begin)
    assert [file.name for file in path.parent.iterdir()] == ["brimline.db"]


def test_damage_found_by_a_read_is_acted_on(path: Path) -> None:
    """The file is set aside when it is closed."""
    fill(path)
    damage_text(path)

    async def read(store: SqliteStore) -> None:
        with pytest.raises(StoreFailed, match="decode to UTF-8"):
            await store.messages()
        assert "decode to UTF-8" in str(store.find_problem())

    while_open(path, read, check_budget_s=0.0)
    assert kept_file(only_problem(path)).exists()
    assert use_store(path, count_messages) == 0


def test_damage_found_before_a_crash_is_acted_on_at_start(path: Path) -> None:
    """The record outlives the process."""
    fill(path)
    path.with_name("brimline.db.doubt").write_text("malformed")
    assert use_store(path, count_messages) == 0
    assert "malformed" in only_problem(path).what
    assert not path.with_name("brimline.db.doubt").exists()


# While it is open


def delete_database(path: Path) -> None:
    """Delete the file alone."""
    path.unlink()


def delete_everything(path: Path) -> None:
    """Delete the file and what SQLite keeps beside it."""
    for file in path.parent.glob("brimline.db*"):
        file.unlink()


def move_database(path: Path) -> None:
    """Move the file to another folder."""
    path.rename(path.parent.parent / "moved.db")


@pytest.mark.parametrize("delete", [delete_database, delete_everything, move_database])
def test_deleted_file_is_written_again(path: Path, delete: Callable[[Path], None]) -> None:
    """Nothing that was acknowledged before or after the deletion is lost."""

    async def lose(store: SqliteStore) -> None:
        await queue_messages(store)
        delete(path)
        await queue_messages(store, first=10)
        assert "deleted or moved" in str(store.find_problem())

    while_open(path, lose)
    assert use_store(path, count_messages) == 20
    problem = only_problem(path)
    assert problem.kept is None
    assert "written to that path again" in problem.advice
    assert path.stat().st_mode & 0o777 == 0o600


def test_replaced_file_is_used_and_the_old_data_kept(path: Path, tmp_path: Path) -> None:
    """A user who restores a backup gets it; the data until then is kept beside it."""
    backup = tmp_path / "backup" / "brimline.db"
    use_store(backup, queue_messages)

    async def replace(store: SqliteStore) -> None:
        await queue_messages(store, first=100)
        await queue_messages(store, first=200)
        backup.replace(path)
        await queue_messages(store, first=300)
        assert "replaced" in str(store.find_problem())

    while_open(path, replace)
    assert use_store(path, count_messages) == 10
    moved = kept_file(only_problem(path))
    assert use_store(moved, count_messages) == 30


def truncate(path: Path) -> None:
    """Cut the file to 0 bytes."""
    os.truncate(path, 0)


def copy_foreign_database(path: Path) -> None:
    """Copy a larger database of another program over the file."""
    foreign = path.parent.parent / "other.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
        connection.execute("INSERT INTO theirs VALUES (zeroblob(1000000))")
        connection.commit()
    with path.open("r+b") as file:
        file.write(foreign.read_bytes())


def copy_garbage(path: Path) -> None:
    """Write something else over the start of the file."""
    with path.open("r+b") as file:
        file.write(b"garbage" * 1_000)


@pytest.mark.parametrize("overwrite", [truncate, copy_foreign_database, copy_garbage])
def test_overwritten_file_is_set_aside(path: Path, overwrite: Callable[[Path], None]) -> None:
    """It stays as the other program wrote it."""
    use_store(path, queue_messages)

    async def lose(store: SqliteStore) -> bytes:
        await queue_messages(store, first=10)
        overwrite(path)
        assert "overwritten" in str(store.find_problem())
        with pytest.raises(StoreFailed, match="overwritten"):
            await store.write([QueueMessage(message("late"))])
        return path.read_bytes()

    after = while_open(path, lose)
    assert kept_file(only_problem(path)).read_bytes() == after
    assert use_store(path, count_messages) == 0
    assert len(problems(path)) == 1


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_deleted_log_loses_nothing(path: Path, suffix: str) -> None:
    """The log's content is written to the database on close."""

    async def lose(store: SqliteStore) -> None:
        await queue_messages(store)
        path.with_name(path.name + suffix).unlink()
        await queue_messages(store, first=10)
        assert suffix in str(store.find_problem())

    while_open(path, lose)
    assert use_store(path, count_messages) == 20
    assert only_problem(path).kept is None


def test_deleted_folder_is_not_created_again(path: Path) -> None:
    """A user who deletes the whole folder wants the data gone."""

    async def lose(store: SqliteStore) -> None:
        await queue_messages(store)
        shutil.rmtree(path.parent)
        assert "deleted or moved" in str(store.find_problem())

    while_open(path, lose)
    assert not path.parent.exists()


def test_growth_of_the_store_is_no_problem(path: Path) -> None:
    async def grow(store: SqliteStore) -> None:
        for number in range(20):
            calls = [PutCall(call(f"{number}-{index}", index)) for index in range(500)]
            await store.write(calls)
            assert store.find_problem() is None

    while_open(path, grow)
    assert problems(path) == []


# What is recorded


def problem(at: float, kept: Path | None = None) -> StoreProblem:
    return StoreProblem(at, "It broke.", None if kept is None else str(kept), "Do this.")


def test_problem_is_shown_for_seven_days(tmp_path: Path) -> None:
    report_problem(tmp_path, problem(1_000.0))
    assert open_problems(tmp_path, 1_000.0 + SHOWN_FOR_S) == [problem(1_000.0)]
    assert open_problems(tmp_path, 1_001.0 + SHOWN_FOR_S) == []


def test_deleting_the_kept_file_dismisses_the_problem(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.touch()
    report_problem(tmp_path, problem(1_000.0, kept))
    assert open_problems(tmp_path, 1_000.0) == [problem(1_000.0, kept)]
    kept.unlink()
    assert open_problems(tmp_path, 1_000.0) == []


def test_record_of_problems_is_bounded_and_private(tmp_path: Path) -> None:
    for number in range(MAX_KEPT + 5):
        report_problem(tmp_path, problem(1_000.0 + number))
    recorded = open_problems(tmp_path, 1_000.0)
    assert [problem_.at for problem_ in recorded] == [
        1_005.0 + number for number in range(MAX_KEPT)
    ]
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("data", [b"", b"{", b'[{"at": "x"}]', b"\xff"])
def test_unreadable_record_is_replaced(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(data)
    assert open_problems(tmp_path, 1_000.0) == []
    report_problem(tmp_path, problem(1_000.0))
    assert msgspec.json.decode((tmp_path / FILE_NAME).read_bytes())[0]["what"] == "It broke."


def test_problem_that_cannot_be_recorded_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "brimline.store"):
        report_problem(tmp_path / "missing", problem(1_000.0))
    assert "It broke. Do this." in caplog.text
    assert "cannot record this" in caplog.text
