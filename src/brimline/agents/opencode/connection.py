"""opencode's database opened so that neither its writer nor its folder notices.

SQLite itself would do more than read: a plain read-only connection to a database in WAL mode makes
the files `-wal` and `-shm` where there are none, and leaves them there. So the way in is chosen by
what lies beside the database:

| beside it | way | what it touches |
|---|---|---|
| a log and its index | `readonly_shm=1`, SQLite's own locks | nothing |
| a log alone (a crash, a copied folder) | no locks, index on the heap | nothing |
| a rollback journal | SQLite's own locks | nothing |
| none of them | `immutable=1` | nothing |

Where no lock is held, the files are looked at again after each query: if they changed meanwhile,
its rows are thrown away and it is asked again.
"""

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar
from urllib.parse import quote

from brimline.errors import UnreadableTranscript

BUSY_TIMEOUT_S = 0.25  # how many seconds we wait for a lock

ATTEMPTS = 5

LOCKED = "mode=ro"
LOG_AND_INDEX = "mode=ro&readonly_shm=1"
LOG_ALONE = "mode=ro&vfs=unix-none"
SETTLED = "mode=ro&immutable=1"

MIGRATE = "Start opencode once, so that it brings its database up to date."

REASONS: tuple[tuple[str, str, str | None], ...] = (
    ("SQLITE_BUSY", f"locked by its writer for more than {BUSY_TIMEOUT_S} s", "Try again later."),
    ("SQLITE_LOCKED", f"locked by its writer for more than {BUSY_TIMEOUT_S} s", "Try again later."),
    ("SQLITE_NOTADB", "not a database, or damaged", None),
    ("SQLITE_CORRUPT", "damaged", None),
    ("SQLITE_ERROR", "its tables are not those that we know", MIGRATE),
)

T = TypeVar("T")


def ask(path: str, query: Callable[[sqlite3.Connection], T]) -> T:
    """What a query answers; raises UnreadableTranscript and says why, and never waits for long."""
    trouble: Exception | None = None
    for _ in range(ATTEMPTS):
        before = _state(path)
        way = _way(path)
        try:
            answer = _asked(path, way, query)
        except sqlite3.Error as error:
            trouble = error
            if not _passing(error) and before == _state(path):
                break
            continue
        if way in (LOCKED, LOG_AND_INDEX) or before == _state(path):
            return answer
    raise _unreadable(path, trouble) from trouble


def _asked(path: str, way: str, query: Callable[[sqlite3.Connection], T]) -> T:
    uri = f"file:{quote(os.path.abspath(path))}?{way}"
    with closing(
        sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    ) as opened:
        opened.text_factory = bytes
        if way == LOG_ALONE:
            opened.execute("PRAGMA locking_mode = exclusive")
        return query(opened)


def _way(path: str) -> str:
    if _size(f"{path}-journal"):
        return LOCKED
    if not _size(f"{path}-wal"):
        return SETTLED
    return LOG_AND_INDEX if _size(f"{path}-shm") else LOG_ALONE


def _state(path: str) -> tuple[object, ...]:
    """What changes when somebody writes; raises where the database is no file."""
    try:
        told = os.stat(path)
    except OSError as error:
        raise UnreadableTranscript(path, error.strerror or str(error)) from error
    if not stat.S_ISREG(told.st_mode):
        raise UnreadableTranscript(path, "not a file")
    beside = (_told(f"{path}-wal"), _told(f"{path}-journal"))
    return told.st_ino, told.st_size, told.st_mtime_ns, beside


def _told(path: str) -> tuple[int, int]:
    """A file's size and time; nothing where there is none."""
    try:
        told = os.stat(path)
    except OSError:
        return 0, 0
    return told.st_size, told.st_mtime_ns


def _size(path: str) -> int:
    return _told(path)[0]


def _passing(error: sqlite3.Error) -> bool:
    """Whether asking at once again may help: the writer was just renewing its index."""
    return _name(error).startswith(("SQLITE_READONLY", "SQLITE_PROTOCOL"))


def _name(error: Exception) -> str:
    return getattr(error, "sqlite_errorname", "")


def _unreadable(path: str, trouble: Exception | None) -> UnreadableTranscript:
    if trouble is None:
        return UnreadableTranscript(path, "it changes faster than it can be read", "Try again.")
    for prefix, reason, hint in REASONS:
        if _name(trouble).startswith(prefix):
            return UnreadableTranscript(path, f"{reason} ({trouble})", hint)
    return UnreadableTranscript(path, str(trouble))
