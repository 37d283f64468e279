"""A file that others also write is replaced whole, or stays as it was."""

import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brimline.errors import InvalidSettings
from brimline.install.shared_file import LOCK_SUFFIX, backup_path, lock_shared_file, read_if_exists

OTHER_UID = 65534

# Increments a counter in a file.
COUNT = """
import sys
from pathlib import Path
from brimline.install.shared_file import lock_shared_file
for _ in range(int(sys.argv[2])):
    with lock_shared_file(Path(sys.argv[1])) as file:
        file.update(lambda data: str(int(data or 0) + 1).encode())
"""

# Replaces one long content by another forever.
SWAP = """
import sys
from pathlib import Path
from brimline.install.shared_file import lock_shared_file
size = int(sys.argv[2])
print("begun", flush=True)
while True:
    with lock_shared_file(Path(sys.argv[1])) as file:
        file.update(lambda data: b"new" * size if data == b"old" * size else b"old" * size)
"""

# Writes more than there is room for.
FILL = """
import resource, signal, sys
from pathlib import Path
from brimline.errors import InvalidSettings
from brimline.install.shared_file import lock_shared_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with lock_shared_file(Path(sys.argv[1])) as file:
        file.update(lambda data: b"x" * 2000)
except InvalidSettings as error:
    print(error)
"""


def write(path: Path, data: bytes) -> None:
    with lock_shared_file(path) as file:
        file.update(lambda _: data)


def started(program: str, *arguments: object) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a particular mode."""
    file = tmp_path / "settings.json"
    file.write_bytes(b"old")
    file.chmod(0o640)
    return file


def test_replacement_keeps_the_mode_and_leaves_no_other_file(path: Path) -> None:
    with lock_shared_file(path) as file:
        assert (path.parent / (path.name + LOCK_SUFFIX)).exists()
        assert file.update(lambda _: b"new") == (b"old", b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)
    assert list(path.parent.iterdir()) == [path]


def test_replacement_keeps_owner_and_group(path: Path) -> None:
    owner = 12345 if os.geteuid() == 0 else os.getuid()
    os.chown(path, owner, -1)
    write(path, b"new")
    assert (path.read_bytes(), path.stat().st_uid) == (b"new", owner)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_file_of_a_foreign_group_is_refused_with_a_hint() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.json"
        path.write_bytes(b"old")
        os.chown(folder, OTHER_UID, OTHER_UID)
        os.chown(path, OTHER_UID, 0)
        with unprivileged(), pytest.raises(InvalidSettings) as refused:
            write(path, b"new")
        assert str(refused.value).endswith(f"sudo chown {OTHER_UID}:{OTHER_UID} {path}")
        assert path.read_bytes() == b"old"
        assert list(path.parent.iterdir()) == [path]


@contextmanager
def unprivileged() -> Generator[None]:
    """Become a user without rights for a while."""
    os.setegid(OTHER_UID)
    os.seteuid(OTHER_UID)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def test_same_content_leaves_the_same_file(path: Path) -> None:
    before = path.stat()
    write(path, b"old")
    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_missing_file_and_folder_are_created_with_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "settings.json"
    old = os.umask(0o027)
    try:
        write(path, b"new")
    finally:
        os.umask(old)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)


def test_private_folder_is_closed_to_others(tmp_path: Path) -> None:
    with lock_shared_file(tmp_path / "state" / "setup.json", private=True):
        assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_no_content_deletes_the_file_even_if_it_is_missing(path: Path) -> None:
    for _ in range(2):
        with lock_shared_file(path) as file:
            file.update(lambda _: None)
        assert not list(path.parent.iterdir())


@pytest.mark.parametrize("link", ["../dotfiles/claude.json", "{root}/dotfiles/claude.json"])
def test_link_stays_and_its_target_is_replaced(tmp_path: Path, link: str) -> None:
    target, path = tmp_path / "dotfiles" / "claude.json", tmp_path / "home" / "settings.json"
    for folder in (target.parent, path.parent):
        folder.mkdir()
    target.write_bytes(b"old")
    path.symlink_to(link.format(root=tmp_path))
    with lock_shared_file(path) as file:
        file.save_backup(b"old")
        file.update(lambda _: b"new")
    assert path.is_symlink()
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]
    assert sorted(path.parent.iterdir()) == [path, backup_path(path)]


def test_target_of_a_broken_link_is_created(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.symlink_to(tmp_path / "dotfiles" / "claude.json")
    write(path, b"new")
    assert path.is_symlink()
    assert path.read_bytes() == b"new"


def test_concurrent_write_of_others_is_not_lost(path: Path) -> None:
    contents: list[bytes | None] = []

    def work(before: bytes | None) -> bytes:
        contents.append(before)
        if len(contents) == 1:
            path.write_bytes(b"theirs")
        return (before or b"") + b"+ours"

    with lock_shared_file(path) as file:
        assert file.update(work) == (b"theirs", b"theirs+ours")
    assert contents == [b"old", b"theirs"]
    assert path.read_bytes() == b"theirs+ours"


def test_file_deleted_meanwhile_is_read_again_as_missing(path: Path) -> None:
    def work(before: bytes | None) -> bytes:
        path.unlink(missing_ok=True)
        return b"new" if before is None else b"wrong"

    with lock_shared_file(path) as file:
        file.update(work)
    assert path.read_bytes() == b"new"


def test_file_that_changes_all_the_time_is_given_up_unchanged(path: Path) -> None:
    def work(before: bytes | None) -> bytes:
        path.write_bytes((before or b"") + b".")
        return b"ours"

    with (
        pytest.raises(InvalidSettings, match="other programs keep changing it"),
        lock_shared_file(path) as file,
    ):
        file.update(work)
    assert path.read_bytes().startswith(b"old.")
    assert list(path.parent.iterdir()) == [path]


def test_backup_has_the_mode_of_the_file_and_is_deleted_when_unused(path: Path) -> None:
    with lock_shared_file(path) as file:
        file.save_backup(b"old")
        copy = backup_path(path)
        assert (copy.read_bytes(), stat.S_IMODE(copy.stat().st_mode)) == (b"old", 0o640)
        file.remove_backup()
        file.remove_backup()
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.usefixtures("without_privileges")
def test_read_only_folder_is_an_error_and_nothing_changes(path: Path) -> None:
    path.parent.chmod(0o500)
    with pytest.raises(InvalidSettings) as caught:
        write(path, b"new")
    path.parent.chmod(0o700)
    assert str(caught.value) == f"{path}: file: cannot be written: Permission denied"
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b"old", [path])


@pytest.mark.usefixtures("without_privileges")
def test_read_only_file_is_not_replaced(path: Path) -> None:
    path.chmod(0o444)
    with pytest.raises(InvalidSettings, match="cannot be written: Permission denied"):
        write(path, b"new")
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b"old", [path])


@pytest.mark.usefixtures("without_privileges")
def test_unreadable_file_is_not_replaced(path: Path) -> None:
    path.chmod(0o200)
    with pytest.raises(InvalidSettings, match="cannot be read: Permission denied"):
        write(path, b"new")
    path.chmod(0o600)
    assert path.read_bytes() == b"old"


def test_full_disk_keeps_the_old_file_and_leaves_no_other(path: Path) -> None:
    out, _ = started(FILL, path).communicate(timeout=60)
    assert out == f"{path}: file: cannot be written: File too large\n"
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b"old", [path])


def test_folder_pipe_or_device_is_refused_without_blocking(tmp_path: Path) -> None:
    pipe, device = tmp_path / "pipe", tmp_path / "device"
    os.mkfifo(pipe)
    device.symlink_to("/dev/null")
    for path in (tmp_path, pipe, device):
        with pytest.raises(InvalidSettings, match=r"cannot be read: (Is a d|not a regular file)"):
            read_if_exists(path)


def test_file_locked_too_long_is_an_error_until_it_is_released(path: Path) -> None:
    again = lock_shared_file(path, wait_s=0)
    with (
        lock_shared_file(path),
        pytest.raises(InvalidSettings, match="another process has locked it"),
        again,
    ):
        pytest.fail("held twice")
    write(path, b"new")
    assert path.read_bytes() == b"new"


def test_concurrent_processes_lose_no_update(path: Path) -> None:
    path.write_bytes(b"0")
    for process in [started(COUNT, path, 20) for _ in range(4)]:
        assert process.wait(120) == 0
        assert process.stdout is not None
        process.stdout.close()
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b"80", [path])


@pytest.mark.slow
@pytest.mark.parametrize("round", range(12))
def test_killed_process_leaves_the_old_or_new_file_and_the_next_cleans_up(
    path: Path, round: int
) -> None:
    size = 100_000
    path.write_bytes(b"old" * size)
    process = started(SWAP, path, size)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(random.Random(round).uniform(0, 0.05))
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    process.stdout.close()
    assert path.read_bytes() in (b"old" * size, b"new" * size)
    write(path, b"after")
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b"after", [path])


def test_stale_lock_file_is_taken_over_and_deleted(path: Path) -> None:
    (path.parent / (path.name + LOCK_SUFFIX)).touch()
    write(path, b"new")
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b"new", [path])
