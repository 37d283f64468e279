"""The open database file: detects that it was moved, replaced or damaged, and keeps its content."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from brimline.store.sqlite.connections import forget_damage, noted_damage
from brimline.store.sqlite.quarantine import (
    APPLICATION_ID,
    DISMISS,
    HEADER_BYTES,
    Unusable,
    application_id,
    free_name,
    inspect_header,
    locked_folder,
    quarantine,
    report,
    sidecars,
)

FileId: TypeAlias = tuple[int, int]
Kind: TypeAlias = Literal["missing", "replaced", "log missing", "damaged"]

_STOP_FIRST = "Stop the daemon first (`brimline serve --stop`) to move, delete or restore the file."


class Finding(NamedTuple):
    """What happened to the open file; `reason` completes a sentence that begins with its path."""

    kind: Kind
    reason: str


class DatabaseFile:
    """A database file that this process has open.

    Created after SQLite's connections and closed after them: closing any handle of the file drops
    the locks of all connections in this process (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        opened = os.fstat(self._handle)
        self._id: FileId = (opened.st_dev, opened.st_ino)
        self._largest_bytes = opened.st_size
        self._application_id = application_id(os.pread(self._handle, HEADER_BYTES, 0))
        self._sidecar_ids = {file: _file_id(file) for file in sidecars(path)}

    def find_problem(self) -> Finding | None:
        """Return what happened to the file, if anything; costs a few system calls."""
        return self._find_move() or self._find_overwriting() or self._find_damage()

    def settle(self, connection: sqlite3.Connection) -> None:
        """Keep the content of a file that is no longer in place, before its connections close.

        A missing file is written again, a replaced one is written next to the other, a damaged one
        is set aside. The next `prepare` opens the file that is at the path then.
        """
        if self.find_problem() is None or not self._path.parent.is_dir():
            return
        with locked_folder(self._path.parent):
            match self.find_problem():  # again: another Brimline may have moved it before the lock
                case Finding("missing", reason):
                    self._restore(connection, f"{self._path} {reason}")
                case Finding("replaced", reason):
                    self._keep_copy(connection, f"{self._path} {reason}")
                case Finding("log missing", reason):
                    what = f"{self._path} {reason}."
                    report(self._path, what, f"No data was lost. {_STOP_FIRST}", None)
                case Finding("damaged", reason):
                    # Before the connections close: SQLite writes its log only to a file in place.
                    quarantine(self._path, Unusable("broken", reason))
                    forget_damage(self._path)
                case _:
                    pass

    def close(self) -> None:
        """Release the file, after all connections of this process were closed."""
        os.close(self._handle)

    def _find_move(self) -> Finding | None:
        try:
            current = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return Finding("missing", "was deleted or moved while Brimline was using it")
        except OSError:
            return None
        if (current.st_dev, current.st_ino) != self._id:
            return Finding("replaced", "was replaced by another file while Brimline was using it")
        for file, identity in self._sidecar_ids.items():
            if identity is not None and _file_id(file) != identity:
                reason = f"lost its file {file.name} while Brimline was using it"
                return Finding("log missing", reason)
        return None

    def _find_overwriting(self) -> Finding | None:
        """A store never shrinks and never changes its mark, unless another program writes to it."""
        try:
            size = os.fstat(self._handle).st_size
            header = os.pread(self._handle, HEADER_BYTES, 0)
        except OSError:
            return None
        shrunk, self._largest_bytes = size < self._largest_bytes, max(size, self._largest_bytes)
        remarked = application_id(header) not in (self._application_id, APPLICATION_ID)
        if not shrunk and not remarked and inspect_header(header) is None:
            return None
        return Finding("damaged", "was overwritten by another program while Brimline was using it")

    def _find_damage(self) -> Finding | None:
        reason = noted_damage(self._path)
        return None if reason is None else Finding("damaged", f"was damaged ({reason})")

    def _restore(self, connection: sqlite3.Connection, what: str) -> None:
        draft = self._path.with_name(f"{self._path.name}.new")
        if not _copy_database(connection, draft):
            report(self._path, f"{what}, and could not be written again.", _STOP_FIRST, None)
            return
        for file in sidecars(self._path):  # of the deleted file; the copy has what is in them
            file.unlink(missing_ok=True)
        draft.rename(self._path)
        advice = f"All of its data was written to that path again. {_STOP_FIRST}"
        report(self._path, f"{what}.", advice, None)

    def _keep_copy(self, connection: sqlite3.Connection, what: str) -> None:
        """Write the content of the replaced file next to the one that replaced it."""
        new_path = free_name(self._path, "replaced")
        copied = _copy_database(connection, new_path)
        for file in sidecars(self._path):
            if _file_id(file) == self._sidecar_ids[file]:
                file.unlink(missing_ok=True)  # SQLite would apply it to the other file
        if copied:
            advice = f"The file that is there now is used from here on. {_STOP_FIRST} {DISMISS}"
            report(
                self._path, f"{what}; the data until then is kept as {new_path}.", advice, new_path
            )
        else:
            report(self._path, f"{what}; the data until then is lost.", _STOP_FIRST, None)


def _copy_database(connection: sqlite3.Connection, target: Path) -> bool:
    """Write a database, as a connection sees it, to another file; returns whether it succeeded."""
    try:
        target.unlink(missing_ok=True)
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(target)) as copy:
            connection.backup(copy)
    except (sqlite3.Error, OSError):
        with suppress(OSError):
            target.unlink(missing_ok=True)
        return False
    return True


def _file_id(path: Path) -> FileId | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
