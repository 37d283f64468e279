"""A small file system of its own, which can be filled or made read-only."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

CHUNK_BYTES = 4_096


class MountFailed(Exception):
    """This user cannot mount a file system here."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"mounting a small file system needs root on Linux: {reason}")


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Generator[Path]:
    """Mount a file system of this size; raises MountFailed if this user cannot."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=0700", "none", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MountFailed(str(error)) from error
    if done.returncode:
        raise MountFailed(done.stderr.strip())
    try:
        yield folder
    finally:
        # Lazily: a process that was just killed may still have a file open there.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, free_bytes: int = 0) -> Path:
    """Write a file that leaves so many bytes free; delete it to have the space again."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * CHUNK_BYTES)
        except OSError:
            file.truncate(max(0, file.tell() - free_bytes))
    return filler


def make_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
