"""A client's SQLite database, read beside its writer.

Queries neither block its writer nor create files next to it. A plain read-only connection to a
database in WAL mode creates the files `-wal` and `-shm` if there are none, and leaves them. So the
mode depends on the files next to the database:

| next to it | mode |
|---|---|
| a log and its index | `readonly_shm=1`, with SQLite's locks |
| a log alone (a crash, a copied folder) | no locks, index on the heap |
| a rollback journal | SQLite's locks |
| none of them | `immutable=1` |

Without locks, the files are compared after each query: if they changed, the query is repeated.
"""

import os
import sqlite3
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TypeVar
from urllib.parse import quote

from brimline.errors import UnreadableTranscript

BUSY_TIMEOUT_S = 0.25

ATTEMPTS = 5

LOCKED = "mode=ro"
LOG_AND_INDEX = "mode=ro&readonly_shm=1"
LOG_ALONE = "mode=ro&vfs=unix-none"
SETTLED = "mode=ro&immutable=1"

MIGRATE = "Start the client once to migrate its database."

REASONS: tuple[tuple[str, str, str | None], ...] = (
    ("SQLITE_BUSY", f"locked by its writer for more than {BUSY_TIMEOUT_S} s", "Try again later."),
    ("SQLITE_LOCKED", f"locked by its writer for more than {BUSY_TIMEOUT_S} s", "Try again later."),
    ("SQLITE_NOTADB", "not a database, or damaged", None),
    ("SQLITE_CORRUPT", "damaged", None),
    ("SQLITE_ERROR", "unknown tables or columns", MIGRATE),
)

SQLITE = b"SQLite format 3\0"  # how a database begins
MAX_TABLES = 500
_SCHEMA = """SELECT CAST(type || name || tbl_name || ' ' || substr(sql, 1, 10000) AS BLOB)
FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid LIMIT ?"""

T = TypeVar("T")


def ask(path: str, query: Callable[[sqlite3.Connection], T]) -> T:
    """Return the result of a query; raises UnreadableTranscript, and never waits for long."""
    failure: sqlite3.Error | None = None
    for _ in range(ATTEMPTS):
        before, mode = _file_state(path), _mode(path)
        try:
            result = _query(path, mode, query)
        except sqlite3.Error as error:
            failure = error
            if not _is_transient(error) and before == _file_state(path):
                break
            continue
        except UnicodeDecodeError as error:  # Python decodes SQLite's error, which quotes the file
            raise UnreadableTranscript(path, "damaged") from error
        if mode in (LOCKED, LOG_AND_INDEX) or before == _file_state(path):
            return result
    raise _unreadable(path, failure) from failure


def _query(path: str, mode: str, query: Callable[[sqlite3.Connection], T]) -> T:
    uri = f"file:{quote(os.fsencode(os.path.abspath(path)))}?{mode}"
    with closing(
        sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    ) as opened:
        opened.text_factory = bytes
        if mode == LOG_ALONE:
            opened.execute("PRAGMA locking_mode = exclusive")
        return query(opened)


def _mode(path: str) -> str:
    if _size_and_time(f"{path}-journal")[0]:
        return LOCKED
    if not _size_and_time(f"{path}-wal")[0]:
        return SETTLED
    return LOG_AND_INDEX if _size_and_time(f"{path}-shm")[0] else LOG_ALONE


def _file_state(path: str) -> tuple[object, ...]:
    """A value that changes with each write; raises if the database is not a file."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise UnreadableTranscript(path, error.strerror or str(error)) from error
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableTranscript(path, "not a file")
    sidecars = (_size_and_time(f"{path}-wal"), _size_and_time(f"{path}-journal"))
    return status.st_ino, status.st_size, status.st_mtime_ns, sidecars


def _size_and_time(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _is_transient(error: sqlite3.Error) -> bool:
    """Whether the writer was just renewing its index."""
    return _error_name(error).startswith(("SQLITE_READONLY", "SQLITE_PROTOCOL"))


def _error_name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")  # errors of the Python module have none


def _unreadable(path: str, failure: sqlite3.Error | None) -> UnreadableTranscript:
    if failure is None:
        return UnreadableTranscript(path, "it changes faster than it can be read", "Try again.")
    for prefix, reason, hint in REASONS:
        if _error_name(failure).startswith(prefix):
            return UnreadableTranscript(path, f"{reason} ({failure})", hint)
    return UnreadableTranscript(path, str(failure))


def read_head(path: str) -> bytes:
    """Return a database's schema as its first pages have it once its log is written into them."""
    rows = ask(path, lambda opened: opened.execute(_SCHEMA, (MAX_TABLES,)).fetchall())
    return SQLITE + b"\n".join(schema for (schema,) in rows)


def only_session(path: str, ids: Sequence[str]) -> str:
    """Return the only session of a database; raises UnreadableTranscript if there are others."""
    if len(ids) == 1:
        return ids[0]
    hint = f"Name one of them: {', '.join(ids[:5])}." if ids else None
    raise UnreadableTranscript(path, f"it has {len(ids)} sessions", hint)


def root_session(own: str, parents: Mapping[str, str | None]) -> str:
    """Return the session of which a session is a thread, by what each was started from."""
    seen = {own}
    while (parent := parents.get(own)) is not None and parent not in seen:
        seen.add(parent)
        own = parent
    return own


def text_value(value: object) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None


def bytes_value(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""


def float_value(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def int_value(value: object) -> int:
    """A time in a column, which in SQLite may hold anything; what is no number sorts first."""
    return value if isinstance(value, int) else 0
