"""A file that others write too is replaced whole, or stays as it was."""

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
from brimline.setup.shared_file import LOCK_SUFFIX, backup_path, lock_shared_file, read_if_exists

NOBODY = 65534

# Increments a counter in a file.
COUNT = """
import sys
from pathlib import Path
from brimline.setup.shared_file import lock_shared_file
for _ in range(int(sys.argv[2])):
    with lock_shared_file(Path(sys.argv[1])) as file:
        file.update(lambda data: str(int(data or 0) + 1).encode())
"""

# Replaces one long content by another forever.
SWAP = """
import sys
from pathlib import Path
from brimline.setup.shared_file import lock_shared_file
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
from brimline.setup.shared_file import lock_shared_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with lock_shared_file(Path(sys.argv[1])) as file:
        file.update(lambda data: b"x" * 2000)
except InvalidSettings as error:
    print(error)
"""


def write(path: Path, data: bytes) -> None:
    """Replace a file's content."""
    with lock_shared_file(path) as file:
        file.update(lambda _: data)


def started(program: str, *arguments: object) -> "subprocess.Popen[str]":
    """A process of ours."""
    words = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a mode of its own."""
    made = tmp_path / "settings.json"
    made.write_bytes(b"old")
    made.chmod(0o640)
    return made


def test_replaced_whole_and_alone(path: Path) -> None:
    """The content is the new one, the mode the old one, and nothing else lies beside it."""
    with lock_shared_file(path) as file:
        assert (path.parent / (path.name + LOCK_SUFFIX)).exists()
        assert file.update(lambda _: b"new") == (b"old", b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)
    assert list(path.parent.iterdir()) == [path]


def test_owner_stays(path: Path) -> None:
    """A file keeps its owner and its group, where we may give it to them."""
    owner = 12345 if os.geteuid() == 0 else os.getuid()
    os.chown(path, owner, -1)
    write(path, b"new")
    assert (path.read_bytes(), path.stat().st_uid) == (b"new", owner)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_group_that_is_not_ours() -> None:
    """A file that we could not give back to its group stays, and it is said what to do."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.json"
        path.write_bytes(b"old")
        os.chown(folder, NOBODY, NOBODY)
        os.chown(path, NOBODY, 0)
        with somebody_else(), pytest.raises(InvalidSettings) as refused:
            write(path, b"new")
        assert str(refused.value).endswith(f"sudo chown {NOBODY}:{NOBODY} {path}")
        assert path.read_bytes() == b"old"
        assert list(path.parent.iterdir()) == [path]


@contextmanager
def somebody_else() -> Generator[None]:
    """Be a user without rights for a while."""
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def test_same_content_is_not_written(path: Path) -> None:
    """What changes nothing leaves the very same file."""
    before = path.stat()
    write(path, b"old")
    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_file_and_folder_are_made(tmp_path: Path) -> None:
    """Where nothing is yet, the folder is made, and the file as the user's umask has it."""
    path = tmp_path / "a" / "b" / "settings.json"
    old = os.umask(0o027)
    try:
        write(path, b"new")
    finally:
        os.umask(old)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)


def test_private_folder(tmp_path: Path) -> None:
    """A folder for what concerns nobody else is closed to them."""
    with lock_shared_file(tmp_path / "state" / "setup.json", private=True):
        assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_file_is_removed(path: Path) -> None:
    """No content is no file; a file that is gone already is as good."""
    for _ in range(2):
        with lock_shared_file(path) as file:
            file.update(lambda _: None)
        assert not list(path.parent.iterdir())


@pytest.mark.parametrize("link", ["../dotfiles/claude.json", "{root}/dotfiles/claude.json"])
def test_link_is_written_through(tmp_path: Path, link: str) -> None:
    """A link stays one; its end is replaced, and the copy lies where the agent's file is."""
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


def test_link_to_nothing(tmp_path: Path) -> None:
    """A link whose end is not there yet gets one."""
    path = tmp_path / "settings.json"
    path.symlink_to(tmp_path / "dotfiles" / "claude.json")
    write(path, b"new")
    assert path.is_symlink()
    assert path.read_bytes() == b"new"


def test_work_is_done_again_on_what_others_wrote(path: Path) -> None:
    """What somebody else writes between our reading and our writing is not lost."""
    seen: list[bytes | None] = []

    def work(before: bytes | None) -> bytes:
        seen.append(before)
        if len(seen) == 1:
            path.write_bytes(b"theirs")
        return (before or b"") + b"+ours"

    with lock_shared_file(path) as file:
        assert file.update(work) == (b"theirs", b"theirs+ours")
    assert seen == [b"old", b"theirs"]
    assert path.read_bytes() == b"theirs+ours"


def test_file_that_others_remove_meanwhile(path: Path) -> None:
    """A file that is gone when it is to be replaced is read again as none."""

    def work(before: bytes | None) -> bytes:
        path.unlink(missing_ok=True)
        return b"new" if before is None else b"wrong"

    with lock_shared_file(path) as file:
        file.update(work)
    assert path.read_bytes() == b"new"


def test_file_that_never_rests(path: Path) -> None:
    """One that others write all the time is given up, as they left it."""

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


def test_copy_looks_like_the_file(path: Path) -> None:
    """The copy has the file's mode, and is gone when it is not wanted any more."""
    with lock_shared_file(path) as file:
        file.save_backup(b"old")
        copy = backup_path(path)
        assert (copy.read_bytes(), stat.S_IMODE(copy.stat().st_mode)) == (b"old", 0o640)
        file.remove_backup()
        file.remove_backup()
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.usefixtures("ordinary")
def test_read_only_folder(path: Path) -> None:
    """Where nothing may be written the error says so, and all is as it was."""
    path.parent.chmod(0o500)
    with pytest.raises(InvalidSettings) as caught:
        write(path, b"new")
    path.parent.chmod(0o700)
    assert str(caught.value) == f"{path}: file: cannot be written: Permission denied"
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b"old", [path])


@pytest.mark.usefixtures("ordinary")
def test_read_only_file(path: Path) -> None:
    """A file that its owner protected is not replaced, though its folder would let us."""
    path.chmod(0o444)
    with pytest.raises(InvalidSettings, match="cannot be written: Permission denied"):
        write(path, b"new")
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b"old", [path])


@pytest.mark.usefixtures("ordinary")
def test_unreadable_file(path: Path) -> None:
    """A file that cannot be read is not replaced."""
    path.chmod(0o200)
    with pytest.raises(InvalidSettings, match="cannot be read: Permission denied"):
        write(path, b"new")
    path.chmod(0o600)
    assert path.read_bytes() == b"old"


def test_no_room(path: Path) -> None:
    """When the new file cannot be written whole, the old one stays, and nothing beside it."""
    out, _ = started(FILL, path).communicate(timeout=60)
    assert out == f"{path}: file: cannot be written: File too large\n"
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b"old", [path])


def test_what_is_no_file(tmp_path: Path) -> None:
    """A folder, a pipe or a device is neither read nor replaced, and nobody waits for a pipe."""
    pipe, device = tmp_path / "pipe", tmp_path / "device"
    os.mkfifo(pipe)
    device.symlink_to("/dev/null")
    for path in (tmp_path, pipe, device):
        with pytest.raises(InvalidSettings, match=r"cannot be read: (Is a d|not a regular file)"):
            read_if_exists(path)


def test_lock_of_another_process(path: Path) -> None:
    """A file that is held too long is told, and can be held when it was let go."""
    again = lock_shared_file(path, wait_s=0)
    with (
        lock_shared_file(path),
        pytest.raises(InvalidSettings, match="another process has locked it"),
        again,
    ):
        pytest.fail("held twice")
    write(path, b"new")
    assert path.read_bytes() == b"new"


def test_many_at_once(path: Path) -> None:
    """Of several processes none undoes another's work."""
    path.write_bytes(b"0")
    for process in [started(COUNT, path, 20) for _ in range(4)]:
        assert process.wait(120) == 0
        assert process.stdout is not None
        process.stdout.close()
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b"80", [path])


@pytest.mark.slow
@pytest.mark.parametrize("round", range(12))
def test_killed_half_way(path: Path, round: int) -> None:
    """Whenever a process is killed, the file is the old one or the new one; the next tidies up."""
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


def test_lock_that_was_left(path: Path) -> None:
    """A lock file that a killed process left is taken over, and goes."""
    (path.parent / (path.name + LOCK_SUFFIX)).touch()
    write(path, b"new")
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b"new", [path])
