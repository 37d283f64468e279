"""The SQLite file: permissions, version, and recovery from damage."""

import fcntl
import logging
import os
import random
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from brimline.errors import NewerStore, StoreFailed
from brimline.store.base import QueueMessage, Store
from brimline.store.sqlite.connections import connect, prepare
from brimline.store.sqlite.migrations import MIGRATIONS
from brimline.testing.store.suite import message

from .helpers import use_store


async def write_some(store: Store) -> list[bool]:
    """Write ten messages, so that there is something to lose."""
    return await store.write([QueueMessage(message(str(number))) for number in range(10)])


async def count(store: Store) -> int:
    return len(await store.messages())


def broken(path: Path) -> list[Path]:
    """The files that were set aside, without SQLite's own files."""
    return [
        file
        for file in path.parent.glob(f"{path.name}.broken-*")
        if not file.name.endswith(("-wal", "-shm"))
    ]


def test_folder_has_mode_0700_and_files_0600(path: Path) -> None:
    async def modes(store: Store) -> set[int]:
        await write_some(store)
        return {file.stat().st_mode & 0o777 for file in path.parent.iterdir()}

    assert use_store(path, modes) == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_readable_file_is_closed_to_others_and_an_existing_folder_unchanged(path: Path) -> None:
    path.parent.mkdir(mode=0o755)
    use_store(path, count)
    path.chmod(0o644)
    use_store(path, write_some)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o755


def test_written_data_is_there_after_reopening(path: Path) -> None:
    assert use_store(path, write_some) == [True] * 10
    assert use_store(path, write_some) == [False] * 10
    assert [file.name for file in path.parent.iterdir()] == ["brimline.db"]


def test_file_of_a_newer_version_is_refused_and_unchanged(path: Path) -> None:
    use_store(path, write_some)
    newer = len(MIGRATIONS) + 1
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {newer}")
    before = path.read_bytes()
    with pytest.raises(NewerStore, match=f"version {newer}\nhint: Update Brimline") as caught:
        use_store(path, count)
    assert (caught.value.found, caught.value.known) == (newer, len(MIGRATIONS))
    assert caught.value.place == str(path)
    assert path.read_bytes() == before
    assert broken(path) == []


Damage: TypeAlias = Callable[[bytes], bytes]


def garbage(data: bytes) -> bytes:
    return b"garbage" * len(data)


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def scratched(data: bytes) -> bytes:
    """Everything after the first two pages overwritten."""
    return data[:8_192] + b"\xff" * (len(data) - 8_192)


def flipped(data: bytes) -> bytes:
    """Bits flipped in some bytes, also in the text of the schema."""
    return bytes(b ^ 0xFF if at >= 4_096 and at % 997 == 108 else b for at, b in enumerate(data))


def unwritable(data: bytes) -> bytes:
    """A header that allows writing only to a newer SQLite."""
    return data[:18] + b"\3" + data[19:]


def unreadable(data: bytes) -> bytes:
    """A header that allows reading only to a newer SQLite."""
    return data[:44] + b"\xff" + data[45:]


def misspelt(data: bytes) -> bytes:
    """One letter of a column's name changed."""
    return data.replace(b"handed_at REAL", b"handed_ut REAL")


DAMAGES = [garbage, cut, scratched, flipped, unwritable, unreadable, misspelt]


@pytest.mark.parametrize("damage", DAMAGES)
def test_broken_file_is_set_aside_with_a_warning_and_replaced(
    path: Path, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    use_store(path, write_some)
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with caplog.at_level(logging.WARNING, "brimline.store"):
        assert use_store(path, count) == 0
    (aside,) = broken(path)
    assert aside.read_bytes() == damaged
    assert str(aside) in caplog.text
    assert use_store(path, write_some) == [True] * 10
    assert use_store(path, count) == 10


def test_file_that_was_set_aside_is_never_overwritten(path: Path) -> None:
    for content in (b"one" * 1_000, b"two" * 1_000):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        assert use_store(path, count) == 0
    assert {file.read_bytes()[:3] for file in broken(path)} == {b"one", b"two"}


def test_sqlite_files_beside_a_broken_file_are_set_aside_with_it(path: Path) -> None:
    use_store(path, write_some)
    with closing(connect(path)) as connection:
        connection.execute("INSERT INTO once (key, at) VALUES ('e', 1.0)")
        path.write_bytes(b"garbage" * 1_000)
        assert use_store(path, count) == 0
        (aside,) = broken(path)
        assert aside.with_name(f"{aside.name}-wal").exists()


def test_second_process_waits_and_uses_the_new_file(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"garbage" * 1_000)
    handle = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    second = threading.Thread(target=prepare, args=(path,))
    second.start()
    second.join(0.3)
    prepare(tmp_path / "other" / "new.db")
    (tmp_path / "other" / "new.db").replace(path)
    os.close(handle)
    second.join()
    assert broken(path) == []
    assert use_store(path, count) == 0


VERSION = range(60, 64)  # The version in the header: damage there looks like a newer version.


def spoiled(data: bytes, seed: int) -> bytes:
    """A file with some bytes changed: in its header, in its schema, or anywhere."""
    chance, changed = random.Random(seed), bytearray(data)
    schema = data.index(b"CREATE TABLE sessions")
    begin, end = chance.choice([(0, 100), (schema, schema + 2_000), (0, len(changed))])
    for _ in range(chance.choice([1, 4, 40])):
        at = chance.randrange(begin, end)
        changed[at] = changed[at] if at in VERSION else chance.randrange(256)
    return bytes(changed)


@pytest.mark.slow
def test_store_opens_after_any_damage(path: Path) -> None:
    use_store(path, write_some)
    good = path.read_bytes()
    aside = 0
    for seed in range(300):
        path.write_bytes(spoiled(good, seed))
        with suppress(StoreFailed):
            use_store(path, count)
        use_store(path, count)
        aside += len(broken(path))
        for file in path.parent.iterdir():
            file.unlink()
    assert 100 < aside < 300


def test_read_only_folder_is_an_error_that_names_the_file(
    path: Path, without_privileges: None
) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o500)
    with pytest.raises(StoreFailed, match="you may write to the file") as caught:
        use_store(path, count)
    assert caught.value.place == str(path)
    path.parent.chmod(0o700)
    assert use_store(path, count) == 0


def test_file_in_a_read_only_folder_is_an_error(path: Path, without_privileges: None) -> None:
    use_store(path, write_some)
    path.parent.chmod(0o500)
    with pytest.raises(StoreFailed, match="you may write to the file"):
        use_store(path, count)
    path.parent.chmod(0o700)
    assert use_store(path, count) == 10


def test_folder_in_place_of_the_file_is_an_error_and_stays(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StoreFailed, match="directory"):
        use_store(path, count)
    assert path.is_dir()


def test_fifo_in_place_of_the_file_is_an_error_without_blocking(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(StoreFailed, match="not a regular file"):
        use_store(path, count)
