"""Connections to the database file: created private, migrated, set aside if damaged."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from brimline.folder_safety import make_private_folder
from brimline.store.failures import StoreFailed
from brimline.store.sqlite import statements as sql
from brimline.store.sqlite.header import Unusable, inspect_file
from brimline.store.sqlite.integrity import check_values, interrupted, quick_check
from brimline.store.sqlite.migrations import migrate
from brimline.store.sqlite.quarantine import locked_folder, quarantine, sidecars

BUSY_TIMEOUT_S = 5.0  # one process waits this long for the writes of another

CHECK_BUDGET_S = 0.25  # a larger file is checked as far as this goes; the daemon checks all of it

_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_GARBLED = "Could not decode to UTF-8"
_WRITES = (
    sql.PUT_SESSION, sql.PUT_THREAD, sql.PUT_CALL, sql.PUT_COMPACTION, sql.INSERT_SIGNAL,
    sql.INSERT_MESSAGE, sql.PUT_HANDOFF, sql.INSERT_EVENT_KEY, sql.MARK_CHANGED, sql.KEEP_MARK,
)  # fmt: skip
_RESTARTS = "The daemon moves the damaged file aside and starts a new store."
_HINTS = {
    sqlite3.SQLITE_FULL: "Free some space on that disk; nothing was written.",
    sqlite3.SQLITE_IOERR: "Is that disk full or failing? Nothing was written.",
    sqlite3.SQLITE_BUSY: "Another program keeps it locked; nothing was written.",
    sqlite3.SQLITE_READONLY: "Its folder and file must be yours to write.",
    sqlite3.SQLITE_CANTOPEN: "Its folder and file must be yours to write.",
    sqlite3.SQLITE_CORRUPT: _RESTARTS,
    sqlite3.SQLITE_NOTADB: _RESTARTS,
}


def connect(path: Path) -> sqlite3.Connection:
    """A connection that may pass to another thread, and leaves transactions to its owner."""
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
    """Make the file ready to be connected to; StoreFailed, NewerStore or UnsafeFolder if not."""
    try:
        make_private_folder(path.parent)
        with locked_folder(path.parent):
            _prepare_alone(path, check_budget_s)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreFailed(str(path), reason, _HINTS[sqlite3.SQLITE_CANTOPEN]) from error
    except sqlite3.Error as error:
        raise store_failed(path, error) from error


def store_failed(path: Path, error: Exception) -> StoreFailed:
    """What to tell of an error of SQLite's, or of a value that it does not take.

    If the file turns out to be damaged, that is noted beside it for whoever can replace it.
    """
    code = _code(error)
    if code in _BROKEN:
        note_damage(path, str(error))
    hint = _HINTS.get(code) if code is not None else None
    return StoreFailed(str(path), str(error), hint)


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
    """Remove the note: the damaged file was set aside."""
    _note(path).unlink(missing_ok=True)


def is_damage(error: Exception) -> bool:
    """Whether an error says that the file's content is damaged."""
    return _code(error) in _BROKEN


def damaged(reason: str) -> Unusable:
    """Return the finding for a damaged database."""
    return Unusable("broken", f"was damaged ({reason})")


def _prepare_alone(path: Path, check_budget_s: float) -> None:
    _set_aside_unusable(path)
    try:
        _open_checked(path, check_budget_s)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise
        quarantine(path, damaged(str(error)))
        _open_checked(path, check_budget_s)


def _set_aside_unusable(path: Path) -> None:
    reason = noted_damage(path)
    try:
        unusable = inspect_file(path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise
        unusable = damaged(str(error))
    if unusable is None and reason is not None and os.path.lexists(path):
        unusable = damaged(reason)
    if unusable is not None:
        quarantine(path, unusable)
    forget_damage(path)


def _open_checked(path: Path, check_budget_s: float) -> None:
    """Bring the file to this version; raise as SQLite would if a check finds damage."""
    if not os.path.lexists(path):
        _create(path)
    _restrict_mode(path)
    end = time.monotonic() + check_budget_s
    with closing(connect(path)) as connection:
        _check_until(end, connection, quick_check)
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
        draft.rename(path)
    finally:
        for leftover in (draft, *sidecars(draft)):
            leftover.unlink(missing_ok=True)


def _restrict_mode(path: Path) -> None:
    """For its owner alone: SQLite gives the files beside it the same mode."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if os.fstat(file).st_mode & 0o077:
            os.fchmod(file, 0o600)
    finally:
        os.close(file)


def _check_until(
    end: float,
    connection: sqlite3.Connection,
    check: Callable[[sqlite3.Connection], str | None],
) -> None:
    """Run a check until a time; what it did not reach is checked by the daemon later."""
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


def _damage(found: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(found)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.doubt")


def _code(error: Exception) -> int | None:
    """SQLite's primary code; the extended ones keep theirs in the lower byte.

    What Python cannot decode has none of its own: a message that quotes a damaged schema, a text.
    """
    if isinstance(error, UnicodeDecodeError) or str(error).startswith(_GARBLED):
        return sqlite3.SQLITE_CORRUPT
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
