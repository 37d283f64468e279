"""Safe replacement of a file that other programs write too.

The lock keeps other processes of Brimline out, but not the agents. So a file is replaced only if it
still has the content that was read, and by a rename, which leaves the old file or the new one. If
that fails the file stays as it was, and InvalidSettings has the reason.
"""

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from brimline.errors import InvalidSettings
from brimline.files.atomic_file import find_drafts, sync_folder, write_draft
from brimline.files.file_lock import lock_file
from brimline.files.folder_safety import make_private_folder
from brimline.files.regular_file import read_regular_file

LOCK_SUFFIX, BACKUP_SUFFIX = ".brimline-lock", ".brimline-backup"
LOCK_WAIT_S = 10.0
MAX_FILE_BYTES = 16 << 20  # an agent's own state may be in the file
MAX_TRIES = 20  # if other programs change the file between reading and writing

Edit: TypeAlias = Callable[[bytes | None], bytes | None]  # old to new content; None is no file

_POLL_S = 0.02


class LockedFile:
    """A file that this process has locked; `target` is where links lead to."""

    def __init__(self, path: Path, target: Path) -> None:
        self._path, self._target = path, target

    def update(
        self, edit: Edit, holds_secret: Callable[[bytes], bool] = lambda _: False
    ) -> tuple[bytes | None, bytes | None]:
        """Replace the content by what `edit` makes of it, and return the old and the new content.

        The edit is repeated if another program changed the file meanwhile. Mode, owner and extended
        attributes stay; content that holds a secret is readable by its owner only.
        """
        for _ in range(MAX_TRIES):
            before = read_if_exists(self._target, self._path)
            after = edit(before)
            private = after is not None and holds_secret(after)
            if after == before or self._replace_if_unchanged(before, after, private):
                return before, after
        raise InvalidSettings(str(self._path), "file", "other programs keep changing it")

    def _replace_if_unchanged(
        self, before: bytes | None, after: bytes | None, private: bool
    ) -> bool:
        """Replace the file if its content is still `before`; returns whether it was."""
        target, draft = self._target, None
        with translate_errors(self._path, "written"):
            if after is not None:
                draft = write_draft(target, after, private=private, like=target, sync=True)
            try:
                if read_if_exists(target, self._path) != before:
                    return False
                with suppress(FileNotFoundError):
                    # Raises for a file that its owner made read-only: a rename would replace it.
                    os.close(os.open(target, os.O_WRONLY | os.O_NONBLOCK))
                if draft is None:
                    target.unlink(missing_ok=True)
                else:
                    draft.replace(target)
            finally:
                if draft is not None:
                    draft.unlink(missing_ok=True)
            sync_folder(target.parent)
        return True

    def save_backup(self, content: bytes) -> None:
        """Write a content to the backup next to the file, with the file's mode and owner."""
        backup = backup_path(self._path)
        with translate_errors(backup, "written"):
            draft = write_draft(backup, content, private=False, like=self._target, sync=True)
            draft.replace(backup)
            sync_folder(backup.parent)

    def remove_backup(self) -> None:
        backup = backup_path(self._path)
        with translate_errors(backup, "removed"):
            backup.unlink(missing_ok=True)


@contextmanager
def lock_shared_file(
    path: Path, private: bool = False, wait_s: float = LOCK_WAIT_S
) -> Generator[LockedFile]:
    """Lock a file, create its folder if needed, and remove the drafts of killed processes."""
    target = Path(os.path.realpath(path))
    lock = _lock_path(target)
    with translate_errors(path, "written"):
        descriptor = _acquire(lock, path, private, wait_s)
    try:
        with translate_errors(path, "written"):
            for draft in _find_drafts(target, path):
                draft.unlink(missing_ok=True)
        yield LockedFile(path, target)
    finally:
        # A process that waits for this lock sees that its file is gone, and creates the next one.
        with suppress(OSError):
            lock.unlink()
        os.close(descriptor)


def backup_path(path: Path) -> Path:
    return path.with_name(path.name + BACKUP_SUFFIX)


def find_leftovers(path: Path) -> list[Path]:
    """Return the files of ours next to a file: backup, lock and drafts."""
    target = Path(os.path.realpath(path))
    candidates = (backup_path(path), _lock_path(target), *_find_drafts(target, path))
    return [candidate for candidate in candidates if os.path.lexists(candidate)]


def first_missing_folder(path: Path) -> Path | None:
    """Return the topmost folder above a file that does not exist yet; None if all exist."""
    missing = None
    for folder in Path(os.path.realpath(path)).parents:
        if os.path.lexists(folder):
            break
        missing = folder
    return missing


def remove_empty_folders(path: Path, top: Path) -> None:
    """Remove the empty folders above a file, up to `top`."""
    for folder in Path(os.path.realpath(path)).parents:
        if not folder.is_relative_to(top):
            return
        with suppress(OSError):
            folder.rmdir()


def read_if_exists(path: Path, name: Path | None = None) -> bytes | None:
    """Read a regular file, None if there is none; raises InvalidSettings for anything else."""
    with translate_errors(name or path, "read"), suppress(FileNotFoundError):
        return read_regular_file(path, MAX_FILE_BYTES)
    return None


@contextmanager
def translate_errors(path: Path, action: str) -> Generator[None]:
    """Raise InvalidSettings instead of OSError; `action` is what the file cannot be."""
    try:
        yield
    except OSError as error:
        reason = f"cannot be {action}: {error.strerror or error}"
        raise InvalidSettings(str(path), "file", reason) from error


def _lock_path(target: Path) -> Path:
    return target.with_name(target.name + LOCK_SUFFIX)


def _acquire(lock: Path, path: Path, private: bool, wait_s: float) -> int:
    """Return a descriptor that holds the lock; the lock's file is removed with the lock.

    The folder is created in each round: another process may have removed it with the last file.
    """
    end = time.monotonic() + wait_s
    while True:
        if private:
            make_private_folder(lock.parent)
        else:  # in a project the umask of its owner decides about permissions
            lock.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            if _is_acquired(descriptor, lock):
                return descriptor
            os.close(descriptor)
        if time.monotonic() > end:
            reason = f"another process has locked it for more than {wait_s:g} s"
            raise InvalidSettings(str(path), "file", reason)
        time.sleep(_POLL_S)


def _is_acquired(descriptor: int, lock: Path) -> bool:
    """Lock a file that may have been removed by its last holder; then it is no lock any more."""
    try:
        return lock_file(descriptor, wait_s=0) and os.path.samestat(
            os.fstat(descriptor), lock.stat()
        )
    except FileNotFoundError:
        return False


def _find_drafts(target: Path, path: Path) -> list[Path]:
    return [*find_drafts(target), *find_drafts(backup_path(path))]
