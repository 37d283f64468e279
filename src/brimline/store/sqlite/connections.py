"""Connections to the database file: created private, migrated, set aside if damaged."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from brimline.errors import StoreFailed
from brimline.files.folder_safety import make_private_folder
from brimline.store.sqlite import statements as sql
from brimline.store.sqlite.integrity import check_pages, check_values, interrupted
from brimline.store.sqlite.migrations import migrate
from brimline.store.sqlite.quarantine import (
    Unusable,
    inspect_file,
    locked_folder,
    quarantine,
    sidecars,
)

BUSY_TIMEOUT_S = 5.0  # one process waits this long for the writes of another

CHECK_BUDGET_S = 0.25  # a larger file is checked as far as this goes; the daemon checks all of it

_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_WRITES = (
    sql.PUT_SESSION, sql.PUT_THREAD, sql.PUT_CALL, sql.PUT_COMPACTION, sql.INSERT_SIGNAL,
    sql.INSERT_MESSAGE, sql.PUT_HANDOFF, sql.INSERT_EVENT_KEY, sql.MARK_CHANGED, sql.KEEP_MARK,
)  # fmt: skip
DAMAGE_HINT = "The daemon moves the damaged file aside and starts a new store."
_ACCESS_HINT = "Make sure that you may write to the file and its folder."
_HINTS: dict[int | None, str] = {
    sqlite3.SQLITE_FULL: "Nothing was written. Free some space on that disk.",
    sqlite3.SQLITE_IOERR: "Nothing was written. Is that disk full or failing?",
    sqlite3.SQLITE_BUSY: "Nothing was written: another program keeps the file locked.",
    sqlite3.SQLITE_READONLY: _ACCESS_HINT,
    sqlite3.SQLITE_CANTOPEN: _ACCESS_HINT,
    sqlite3.SQLITE_CORRUPT: DAMAGE_HINT,
    sqlite3.SQLITE_NOTADB: DAMAGE_HINT,
}


def connect(path: Path) -> sqlite3.Connection:
    """Connect for any thread; the caller begins and ends transactions."""
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = ON")
    except (sqlite3.Error, UnicodeDecodeError):
        connection.close()
        raise
    return connection


def connect_for_reading(path: Path) -> sqlite3.Connection:
    """Connect without the right to write; the database must be open elsewhere already."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, timeout=BUSY_TIMEOUT_S, uri=True, check_same_thread=False)


def prepare(path: Path, check_budget_s: float = CHECK_BUDGET_S) -> None:
    """Create, check and migrate the file; raises StoreFailed, NewerStore or UnsafeFolder."""
    try:
        make_private_folder(path.parent)
        with locked_folder(path.parent):
            _prepare_alone(path, check_budget_s)
    except OSError as error:
        raise StoreFailed(str(path), error.strerror or str(error), _ACCESS_HINT) from error
    except sqlite3.Error as error:
        raise store_failed(path, error) from error


def store_failed(path: Path, error: Exception) -> StoreFailed:
    """Return the StoreFailed for an error of SQLite, or for a value that it does not accept.

    If the file is damaged, that is noted next to it for the daemon, which replaces it.
    """
    if is_damage(error):
        note_damage(path, str(error))
    return StoreFailed(str(path), str(error), _HINTS.get(_code(error)))


def note_damage(path: Path, reason: str) -> None:
    """Leave a note that the file is damaged; the first reason is kept."""
    with suppress(OSError), _note(path).open("x", encoding="utf-8", errors="replace") as file:
        file.write(reason)


def noted_damage(path: Path) -> str | None:
    """Return why the file is damaged, as noted before; None if it is not."""
    try:
        return _note(path).read_text("utf-8", "replace") or "unknown"
    except OSError:
        return None


def forget_damage(path: Path) -> None:
    _note(path).unlink(missing_ok=True)


def is_damage(error: Exception) -> bool:
    """Return whether an error means that the file's content is damaged."""
    return _code(error) in _BROKEN


def _prepare_alone(path: Path, check_budget_s: float) -> None:
    """Prepare the file while this process has the folder's lock; set it aside if unusable."""
    reason = noted_damage(path) if os.path.lexists(path) else None
    try:
        unusable = inspect_file(path)
        if unusable is None and reason is None:
            forget_damage(path)
            _open_checked(path, check_budget_s)
            return
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise
        unusable, reason = None, str(error)
    quarantine(path, unusable or Unusable("broken", f"was damaged ({reason})"))
    forget_damage(path)
    _open_checked(path, check_budget_s)


def _open_checked(path: Path, check_budget_s: float) -> None:
    """Bring the file to this version; raise as SQLite would if a check finds damage."""
    if not os.path.lexists(path):
        _create(path)
    _restrict_mode(path)
    end = time.monotonic() + check_budget_s
    with closing(connect(path)) as connection:
        _check_until(end, connection, check_pages)
        migrate(connection, str(path))
        _check_tables(connection)
        _check_until(end, connection, check_values)


def _create(path: Path) -> None:
    """Create a complete store under another name first: an empty file at its path is damage."""
    draft = path.with_name(f"{path.name}.new")
    for leftover in (draft, *sidecars(draft), *sidecars(path)):
        leftover.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with closing(connect(draft)) as connection:
            migrate(connection, str(path))
            # Closing does it too, but without an error if the disk is full: half a file is left.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        draft.rename(path)
    finally:
        for leftover in (draft, *sidecars(draft)):
            leftover.unlink(missing_ok=True)


def _restrict_mode(path: Path) -> None:
    """Take all permissions of others away; SQLite gives the files next to it the same mode."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if os.fstat(file).st_mode & 0o077:
            os.fchmod(file, 0o600)
    finally:
        os.close(file)


def _check_until(
    end: float, connection: sqlite3.Connection, check: Callable[[sqlite3.Connection], str | None]
) -> None:
    """Run a check until a time; the daemon checks the rest later."""
    remaining_s = end - time.monotonic()
    if remaining_s <= 0:
        return
    try:
        with interrupted(connection, threading.Event(), remaining_s):
            reason = check(connection)
    except sqlite3.OperationalError as error:
        if _code(error) != sqlite3.SQLITE_INTERRUPT:
            raise
        return
    if reason is not None:
        raise _damage(reason)


def _check_tables(connection: sqlite3.Connection) -> None:
    """Raise if a table of this version does not accept our writes."""
    try:
        for text in _WRITES:
            connection.execute(f"EXPLAIN {text}", (None,) * text.count("?"))
    except sqlite3.OperationalError as error:
        if _code(error) != sqlite3.SQLITE_ERROR:
            raise
        raise _damage(str(error)) from error


def _damage(reason: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(reason)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.doubt")


def _code(error: Exception) -> int | None:
    """Return SQLite's primary error code, the lower byte of the extended one.

    A text that Python cannot decode, or a message that quotes a damaged schema, has none.
    """
    undecodable = str(error).startswith("Could not decode to UTF-8")
    if undecodable or isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
