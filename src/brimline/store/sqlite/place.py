"""The file: made for its owner alone, brought to this version, put aside where it is broken."""

import fcntl
import logging
import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from brimline.store.failures import StoreFailed
from brimline.store.sqlite import statements as sql
from brimline.store.sqlite.migrations import migrate

BUSY = 5.0
"""So many seconds one process waits for the writes of another."""

CHECKED = 8 << 20
"""Up to this size a file is read through when it is opened; it takes about 20 ms."""

log = logging.getLogger("brimline.store")

_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_GARBLED = "Could not decode to UTF-8"
_WRITABLE, _FORMAT = b"\2", b"\0\0\0\4"
_WRITES = (
    sql.PUT_SESSION, sql.PUT_THREAD, sql.PUT_CALL, sql.PUT_COMPACTION, sql.FIRE, sql.QUEUE,
    sql.PUT_HANDOFF, sql.ONCE, sql.CHANGED, sql.KEEP_MARK,
)  # fmt: skip
_HINTS = {
    sqlite3.SQLITE_FULL: "Free some space on that disk; nothing was written.",
    sqlite3.SQLITE_IOERR: "Is that disk full or failing? Nothing was written.",
    sqlite3.SQLITE_BUSY: "Another program keeps it locked; nothing was written.",
    sqlite3.SQLITE_READONLY: "Its folder and file must be yours to write.",
    sqlite3.SQLITE_CANTOPEN: "Its folder and file must be yours to write.",
    sqlite3.SQLITE_CORRUPT: "Start Brimline anew: the broken file is then put aside.",
    sqlite3.SQLITE_NOTADB: "Start Brimline anew: the broken file is then put aside.",
}


def connect(path: Path) -> sqlite3.Connection:
    """A connection that may pass to another thread, and leaves transactions to its owner."""
    connection = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = ON")
    except (sqlite3.Error, UnicodeDecodeError):
        connection.close()
        raise
    return connection


def prepare(path: Path) -> None:
    """Make the file ready to be connected to; StoreFailed or NewerStore where that cannot be."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(path.parent):
            _repaired(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreFailed(str(path), reason, _HINTS[sqlite3.SQLITE_CANTOPEN]) from error
    except sqlite3.Error as error:
        raise failed(path, error) from error


def failed(path: Path, error: Exception) -> StoreFailed:
    """What to tell of an error of SQLite's, or of a value that it does not take.

    A file that turns out to be broken is read through when it is opened next, whatever its size.
    """
    code = _code(error)
    if code in _BROKEN:
        with suppress(OSError):
            _doubt(path).touch()
    hint = _HINTS.get(code) if code is not None else None
    return StoreFailed(str(path), str(error), hint)


def _repaired(path: Path) -> None:
    try:
        _ready(path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if _code(error) not in _BROKEN:
            raise
        log.warning("%s is broken (%s): put aside as %s", path, error, _aside(path))
        _ready(path)


def _ready(path: Path) -> None:
    _make(path)
    _check_head(path)
    with closing(connect(path)) as connection:
        doubted = _doubt(path).exists()
        if doubted or path.stat().st_size <= CHECKED:
            _check_pages(connection)
        if doubted:
            _check_texts(connection)
        migrate(connection, str(path))
        _check_tables(connection)
    _doubt(path).unlink(missing_ok=True)


def _make(path: Path) -> None:
    """There, and for its owner alone: SQLite gives the files beside it the same mode."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(file).st_mode & 0o077:
            os.fchmod(file, 0o600)
    finally:
        os.close(file)


def _check_head(path: Path) -> None:
    """Raise where the file is of a format that no SQLite of today would write to."""
    with path.open("rb") as file:
        head = file.read(100)
    if head[18:19] > _WRITABLE or head[44:48] > _FORMAT:
        raise _damage("unknown file format")


def _check_pages(connection: sqlite3.Connection) -> None:
    """Raise as SQLite would when it comes upon the damage."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise _damage(found)


def _check_texts(connection: sqlite3.Connection) -> None:
    """Raise where a text cannot be read: SQLite itself takes any bytes for one."""
    named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in named:
        for _ in connection.execute(f'SELECT * FROM "{name}"'):
            pass


def _check_tables(connection: sqlite3.Connection) -> None:
    """Raise where a table of this version does not take what is written to it."""
    try:
        for text in _WRITES:
            connection.execute(f"EXPLAIN {text}", (None,) * text.count("?"))
    except sqlite3.OperationalError as error:
        if _code(error) != sqlite3.SQLITE_ERROR:
            raise
        raise _damage(str(error)) from error


def _damage(found: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(found)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _aside(path: Path) -> Path:
    """Move the file out of the way, under a name that is free.

    What another process keeps beside it goes along: it must not be taken for the new file's.
    """
    stem = f"{path.name}.broken-{datetime.now(UTC):%Y-%m-%dT%H%M%S}"
    names = (stem, *(f"{stem}-{number}" for number in range(2, 1_000)))
    target = next(there for there in (path.with_name(name) for name in names) if not there.exists())
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(target.with_name(target.name + suffix))
    return target


@contextmanager
def _alone(folder: Path) -> Generator[None, None, None]:
    """One process at a time: two that find a broken file must not put the new one aside too."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _doubt(path: Path) -> Path:
    return path.with_name(f"{path.name}.doubt")


def _code(error: Exception) -> int | None:
    """SQLite's primary code; the extended ones keep theirs in the lower byte.

    What Python cannot decode has none of its own: a message that quotes a damaged schema, a text.
    """
    if isinstance(error, UnicodeDecodeError) or str(error).startswith(_GARBLED):
        return sqlite3.SQLITE_CORRUPT
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
