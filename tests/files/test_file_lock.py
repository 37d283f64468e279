"""Locks among processes: one holder, a limit on waiting, and release by a crash."""

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brimline.files.file_lock import lock_file, locked_file

HOLD_LOCK = """
import sys
from pathlib import Path
from brimline.files.file_lock import locked_file
with locked_file(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def lock_held_by_other_process(path: Path) -> Generator["subprocess.Popen[str]"]:
    """Run a process that holds the lock until its stdin ends."""
    words = [sys.executable, "-c", HOLD_LOCK, str(path)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_lock_file_is_private_and_writable(tmp_path: Path) -> None:
    with locked_file(tmp_path / "lock") as descriptor:
        os.write(descriptor, b"1\n")
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "lock").read_bytes() == b"1\n"


@pytest.mark.parametrize("wait_s", [0.0, 0.1])
def test_held_lock_times_out(tmp_path: Path, wait_s: float) -> None:
    path = tmp_path / "lock"
    with lock_held_by_other_process(path):
        began = time.monotonic()
        with pytest.raises(TimeoutError, match=str(path)), locked_file(path, wait_s):
            pytest.fail("two processes hold one lock")
        assert time.monotonic() - began >= wait_s


def test_lock_of_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock_held_by_other_process(path) as process:
        process.kill()
        process.wait()
        with locked_file(path, wait_s=5.0):
            pass


def test_lock_without_limit_waits_for_release(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock_held_by_other_process(path) as process:
        assert process.stdin is not None
        process.stdin.close()
        with locked_file(path):
            pass


def test_folder_can_be_locked_only_once_per_descriptor(tmp_path: Path) -> None:
    first, second = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    try:
        assert lock_file(first, wait_s=0)
        assert not lock_file(second, wait_s=0)
    finally:
        os.close(first)
        os.close(second)
