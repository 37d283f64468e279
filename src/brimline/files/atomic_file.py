"""Files that are replaced as a whole: a reader sees the old content or the new, never a part.

The content is written to a draft in the same folder, which is then renamed.
"""

import glob
import os
import stat
from pathlib import Path

DRAFT_MARK = ".brimline-new-"


def replace_file(path: Path, data: bytes, *, sync: bool = False) -> None:
    """Put a file with mode 0600 in place; with `sync` it is on the disk when this returns."""
    draft = write_draft(path, data, sync=sync)
    try:
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    if sync:
        sync_folder(path.parent)


def write_draft(
    path: Path,
    data: bytes,
    *,
    private: bool = True,
    like: Path | None = None,
    sync: bool = False,
) -> Path:
    """Write the new content of a file to a draft next to it, and return the draft's path.

    The draft has the mode, owner and attributes of the file `like`, if that exists; `private` takes
    all permissions of others away. A draft that cannot be completed is removed.
    """
    draft = path.with_name(f".{path.name}{DRAFT_MARK}{os.urandom(4).hex()}")
    has_model = like is not None and like.exists()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600 if private or has_model else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if like is not None:
                _copy_metadata(like, draft)
            if private:
                mode = os.fstat(descriptor).st_mode & stat.S_IRWXU if has_model else 0o600
                os.fchmod(descriptor, mode)
            file.write(data)
            if sync:
                file.flush()
                os.fsync(descriptor)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return draft


def find_drafts(path: Path) -> list[Path]:
    """Return the drafts of a file; without a writer they are what killed processes left."""
    return list(path.parent.glob(f".{glob.escape(path.name)}{DRAFT_MARK}*"))


def sync_folder(folder: Path) -> None:
    """Have renames in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy_metadata(source: Path, target: Path) -> None:
    # Imported here: they take 3 ms, and only setup copies metadata.
    import shlex
    import shutil

    try:
        wanted, current = source.stat(), target.stat()
    except FileNotFoundError:
        return
    if (wanted.st_uid, wanted.st_gid) != (current.st_uid, current.st_gid):
        try:
            os.chown(target, wanted.st_uid, wanted.st_gid)
        except PermissionError as error:
            owner = f"user {wanted.st_uid} and group {wanted.st_gid}"
            chown = shlex.join(["chown", f"{current.st_uid}:{current.st_gid}", str(source)])
            reason = f"{source} belongs to {owner}, and its owner cannot be kept"
            raise OSError(f"{reason}. Make it yours: sudo {chown}") from error
    shutil.copystat(source, target)
