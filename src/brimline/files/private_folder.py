"""Folders that only this user can read."""

from contextlib import suppress
from pathlib import Path

PRIVATE_MODE = 0o700


def create_private_folder(path: Path) -> None:
    """Create a folder and its missing parents with mode 0700 under any umask; OSError if not."""
    if path.is_dir():
        return
    create_private_folder(path.parent)
    try:
        path.mkdir(PRIVATE_MODE)
    except FileExistsError:
        if not path.is_dir():  # else another process was faster
            raise
        return
    path.chmod(PRIVATE_MODE)  # a umask may have taken our own rights


def remove_old_files(folder: Path, before: float) -> None:
    """Remove the files that were last written before a time, also what a killed process left."""
    for path in folder.iterdir():
        with suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()
