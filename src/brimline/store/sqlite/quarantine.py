"""Inspects the file at the store's path, and sets aside what cannot be the store.

Such a file is renamed, never deleted.
"""

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from brimline.files.file_lock import lock_file
from brimline.files.regular_file import open_regular_file
from brimline.store.problems import StoreProblem, report_problem

LOST = (
    "A new store was started: sessions are read again from the agents' transcripts, but queued "
    "messages, handoffs and older history that only this file had are missing."
)
DISMISS = "Remove the file to dismiss this message."

APPLICATION_ID = 0x4252494D  # "BRIM": `file` and other programs read it from the header

SIDECARS = ("-wal", "-shm")  # the files that SQLite keeps next to an open database

# How a file that was set aside is named: `brimline.db.broken-TIME`.
Label: TypeAlias = Literal["broken", "foreign", "replaced"]

_MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
# https://www.sqlite.org/fileformat.html: a higher number means that a newer SQLite is needed.
_WRITE_VERSION, _NEWEST_WRITE_VERSION = slice(18, 19), b"\2"
_SCHEMA_FORMAT, _NEWEST_SCHEMA_FORMAT = slice(44, 48), b"\0\0\0\4"
_APPLICATION_ID = slice(68, 72)

# Every version of ours has these; stores of version 4 and older have no application id.
_OUR_TABLES = {
    "sessions", "threads", "calls", "signals", "messages", "handoffs", "once", "changes",
}  # fmt: skip


class Unusable(NamedTuple):
    """Why a file cannot be the store; `reason` completes a sentence that begins with its path."""

    label: Label
    reason: str


def inspect_file(path: Path) -> Unusable | None:
    """Return why the file at a path is not a store of ours; None if it is, or there is none.

    Must not be called while this process has the database open: closing the file here would drop
    SQLite's locks (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """
    if not os.path.lexists(path):
        return _inspect_leftover_log(path)
    with os.fdopen(open_regular_file(path), "rb") as file:
        header = file.read(HEADER_BYTES)
    unusable = inspect_header(header)
    if unusable is None and not _is_ours(path, application_id(header)):
        return Unusable("foreign", "was a database of another program")
    return unusable


def inspect_header(header: bytes) -> Unusable | None:
    """Return why a file with this header is not a database that we can write to."""
    if not header:
        return Unusable("broken", "was empty (0 bytes)")
    if len(header) < HEADER_BYTES or not header.startswith(_MAGIC):
        return Unusable("broken", "was not a SQLite database")
    newer = (
        header[_WRITE_VERSION] > _NEWEST_WRITE_VERSION
        or header[_SCHEMA_FORMAT] > _NEWEST_SCHEMA_FORMAT
    )
    return Unusable("broken", "had an unknown file format") if newer else None


def application_id(header: bytes) -> int:
    """Return the number by which a program marks its SQLite files; 0 if it does not."""
    return int.from_bytes(header[_APPLICATION_ID], "big")


def sidecars(path: Path) -> list[Path]:
    """Return the paths of the files that SQLite keeps next to a database, its log first."""
    return [path.with_name(path.name + suffix) for suffix in SIDECARS]


def table_names(connection: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    return [name for (name,) in connection.execute(query)]


def _inspect_leftover_log(path: Path) -> Unusable | None:
    """A log without its database must not be applied to a new one: SQLite would not notice."""
    log, _ = sidecars(path)
    if not log.is_file() or not log.stat().st_size:
        return None
    return Unusable("broken", "was missing, and only its write-ahead log was left")


def _is_ours(path: Path, mark: int) -> bool:
    """Return whether a database is empty or a store; reads it without changing it."""
    if mark:
        return mark == APPLICATION_ID
    # An immutable database is read without locks and without files next to it; but its log is not.
    mode = "mode=ro" if sidecars(path)[0].exists() else "mode=ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?{mode}"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        names = {*table_names(connection)}
    return not names or (version > 0 and names >= _OUR_TABLES)


@contextmanager
def locked_folder(folder: Path) -> Generator[None]:
    """Let one process at a time move the store's files or create them."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        lock_file(handle)
        yield
    finally:
        os.close(handle)


def free_name(path: Path, label: Label) -> Path:
    """Return a free name next to the path: `brimline.db.broken-2026-01-31T120000`."""
    stem = f"{path.name}.{label}-{datetime.now(UTC):%Y-%m-%dT%H%M%S}"
    names = (stem, *(f"{stem}-{number}" for number in range(2, 1_000)))
    targets = (path.with_name(name) for name in names)
    return next(each for each in targets if not any(map(os.path.lexists, [each, *sidecars(each)])))


def quarantine(path: Path, unusable: Unusable) -> None:
    """Set a file aside and report it; the caller holds the folder's lock.

    Files that another process keeps next to the database are moved with it: SQLite must not apply
    them to the new file.
    """
    target = free_name(path, unusable.label)
    moved = [
        part.rename(new_path)
        for part, new_path in zip([path, *sidecars(path)], [target, *sidecars(target)], strict=True)
        if os.path.lexists(part)
    ]
    new_path = moved[0] if moved else target
    advice = f"{LOST} {DISMISS}"
    if unusable.label == "foreign":
        advice = (
            f"It was not changed, and a new store was started at {path}. Move it to where it "
            f"belongs: `mv {new_path} FOLDER`."
        )
    report(path, f"{path} {unusable.reason}; it is kept as {new_path}.", advice, new_path)


def report(path: Path, what: str, advice: str, new_path: Path | None) -> None:
    """Log and record a problem of the store at a path."""
    problem = StoreProblem(time.time(), what, None if new_path is None else str(new_path), advice)
    report_problem(path.parent, problem)
