"""Safe replacement of a file that others write too.

Held, a file is ours among the processes that ask the same way; the clients do not ask. So a file is
only replaced while it is what was read, by a rename, which leaves the old one or the new one and
nothing between. Where that cannot be done the file stays as it was, and InvalidSettings says why.
"""

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from brimline.atomic_file import find_drafts, sync_folder, write_draft
from brimline.errors import InvalidSettings
from brimline.file_lock import lock_file
from brimline.private_folder import make_private_folder
from brimline.regular_file import read_regular_file

LOCK, BACKUP = ".brimline-lock", ".brimline-backup"
PATIENCE = 10.0
"""How many seconds another process may hold the file."""

MAX_FILE_BYTES = 16 << 20
"""The limit for a file that is edited; a client's own state may be in it."""

TRIES = 20
"""How often a file may change between reading and writing."""

Work: TypeAlias = Callable[[bytes | None], bytes | None]
"""From what a file holds to what it shall hold; None stands for no file."""

_PAUSE = 0.02


class Held:
    """A file that no other process of ours touches meanwhile; a link is followed to its end."""

    def __init__(self, path: Path, target: Path) -> None:
        self._path, self._target = path, target

    def change(
        self, work: Work, holds_secret: Callable[[bytes], bool] = lambda _: False
    ) -> tuple[bytes | None, bytes | None]:
        """What it held, and what it holds after the work; None stands for no file.

        The work is done again on what somebody else wrote meanwhile. Mode, owner and extended
        attributes stay those of the file that is replaced; one that holds a secret can be read by
        its owner alone.
        """
        for _ in range(TRIES):
            before = told(self._target, self._path)
            after = work(before)
            with _refused(self._path, "written"):
                private = after is not None and holds_secret(after)
                if after == before or _swapped(self._target, before, after, private):
                    return before, after
        raise InvalidSettings(str(self._path), "file", "is changed by others all the time")

    def keep(self, before: bytes) -> None:
        """Keep a copy of what it held, with its mode and owner, beside it."""
        place = backup_of(self._path)
        with _refused(place, "written"):
            write_draft(place, before, private=False, like=self._target, sync=True).replace(place)
            sync_folder(place.parent)

    def forget(self) -> None:
        """Remove the copy."""
        place = backup_of(self._path)
        with _refused(place, "removed"):
            place.unlink(missing_ok=True)


@contextmanager
def held(path: Path, private: bool = False, patience: float = PATIENCE) -> Generator[Held]:
    """Hold a file; its folder is made if need be, and what a killed process left is removed."""
    target = Path(os.path.realpath(path))
    lock = _lock_of(target)
    with _refused(path, "written"):
        handle = _locked(lock, path, private, patience)
    try:
        with _refused(path, "written"):
            for draft in _drafts(target, path):
                draft.unlink(missing_ok=True)
        yield Held(path, target)
    finally:
        # Whoever waits for the lock sees that its file is gone, and takes the next one.
        with suppress(OSError):
            lock.unlink()
        os.close(handle)


def backup_of(path: Path) -> Path:
    """Where the copy of a file is kept."""
    return path.with_name(path.name + BACKUP)


def leftovers(path: Path) -> list[Path]:
    """What lies beside a file under our own names; none of it is of use where nothing is ours."""
    target = Path(os.path.realpath(path))
    beside = (backup_of(path), _lock_of(target), *_drafts(target, path))
    return [place for place in beside if os.path.lexists(place)]


def folder_to_make(path: Path) -> Path | None:
    """The first folder on the way to a file that is not there yet; None where all are."""
    missing = None
    for folder in Path(os.path.realpath(path)).parents:
        if os.path.lexists(folder):
            break
        missing = folder
    return missing


def unmake(path: Path, made: Path) -> None:
    """Remove a folder that was made for a file, and those below it, as far as they are empty."""
    for folder in Path(os.path.realpath(path)).parents:
        if not folder.is_relative_to(made):
            return
        with suppress(OSError):
            folder.rmdir()


def read(path: Path) -> bytes | None:
    """A regular file's content; None where there is none. Raises OSError for anything else."""
    try:
        return read_regular_file(path, MAX_FILE_BYTES)
    except FileNotFoundError:
        return None


def told(path: Path, name: Path | None = None) -> bytes | None:
    """The same; InvalidSettings, with the name that the file is known by, for anything else."""
    with _refused(name or path, "read"):
        return read(path)


@contextmanager
def _refused(path: Path, what: str) -> Generator[None]:
    """What the system refuses is told with the file that it is about."""
    try:
        yield
    except OSError as error:
        reason = f"cannot be {what}: {error.strerror or error}"
        raise InvalidSettings(str(path), "file", reason) from error


def _lock_of(target: Path) -> Path:
    return target.with_name(target.name + LOCK)


def _locked(lock: Path, path: Path, private: bool, patience: float) -> int:
    """A handle that holds the lock, whose file goes when it is let go.

    Its folder is made anew each time: another process may have removed it with the last file.
    """
    end = time.monotonic() + patience
    while True:
        if private:
            make_private_folder(lock.parent)
        else:  # a project's folder, whose permissions are for its owner's umask to say
            lock.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            if _taken(handle, lock):
                return handle
            os.close(handle)
        if time.monotonic() > end:
            reason = f"held by another process for more than {patience:g} s"
            raise InvalidSettings(str(path), "file", reason)
        time.sleep(_PAUSE)


def _taken(handle: int, lock: Path) -> bool:
    try:
        return lock_file(handle, wait_s=0) and os.path.samestat(os.fstat(handle), lock.stat())
    except FileNotFoundError:
        return False


def _drafts(target: Path, path: Path) -> list[Path]:
    """What killed processes left of files that were to take the place of this one or its copy."""
    return [*find_drafts(target), *find_drafts(backup_of(path))]


def _swapped(target: Path, before: bytes | None, after: bytes | None, private: bool) -> bool:
    """Put one content in the place of another; False where that is not there any more."""
    draft = None
    if after is not None:
        draft = write_draft(target, after, private=private, like=target, sync=True)
    try:
        if read(target) != before:
            return False
        _writable(target)
        if draft is None:
            target.unlink(missing_ok=True)
        else:
            draft.replace(target)
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)
    sync_folder(target.parent)
    return True


def _writable(target: Path) -> None:
    """A rename would pass over a file that its owner made read-only: ask first."""
    with suppress(FileNotFoundError):
        os.close(os.open(target, os.O_WRONLY | os.O_NONBLOCK))
