"""Regular files: anything else is refused at once, and what is too large is not read."""

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from brimline.regular_file import CHUNK_BYTES, open_regular_file, read_regular_file


def make_fifo(path: Path) -> None:
    """A FIFO that nobody writes to."""
    os.mkfifo(path)


def make_device(path: Path) -> None:
    """A device that never ends."""
    path.symlink_to("/dev/zero")


def make_socket(path: Path) -> None:
    """A socket that nobody listens at."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def make_link_loop(path: Path) -> None:
    """A link to itself."""
    path.symlink_to(path)


def make_dangling_link(path: Path) -> None:
    """A link to nothing."""
    path.symlink_to(path.with_name("nothing"))


def make_nothing(path: Path) -> None:
    """No file at all."""


@pytest.mark.parametrize(
    ("make", "number"),
    [
        (make_fifo, errno.EINVAL),
        (make_device, errno.EINVAL),
        (make_socket, errno.EINVAL),
        (Path.mkdir, errno.EISDIR),
        (make_link_loop, errno.ELOOP),
        (make_dangling_link, errno.ENOENT),
        (make_nothing, errno.ENOENT),
    ],
)
def test_what_is_no_regular_file_is_refused(
    tmp_path: Path, make: Callable[[Path], None], number: int
) -> None:
    """Nothing but a regular file is opened, and nobody waits for a writer."""
    path = tmp_path / "file"
    make(path)
    with pytest.raises(OSError, match=str(path)) as refused:
        read_regular_file(path)
    assert refused.value.errno == number


def test_file_replaced_by_a_fifo_after_the_check_is_refused(tmp_path: Path) -> None:
    """The type is checked again on what was opened: the first check may be of another file."""

    class Replaced(os.PathLike[str]):
        """A path that leads to a file when it is checked, and to a FIFO when it is opened."""

        def __init__(self) -> None:
            self.paths = iter([tmp_path / "file", tmp_path / "fifo"])

        def __fspath__(self) -> str:
            return str(next(self.paths, tmp_path / "fifo"))

    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(OSError, match="not a regular file"):
        open_regular_file(Replaced())
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.usefixtures("ordinary")
def test_unreadable_file_is_refused(tmp_path: Path) -> None:
    """A file without read permission raises PermissionError."""
    path = tmp_path / "file"
    path.touch(mode=0o000)
    with pytest.raises(PermissionError):
        read_regular_file(path)


def test_path_with_nul_is_refused() -> None:
    """A path that no system takes is an OSError like any other, not a ValueError."""
    with pytest.raises(OSError, match="not a path"):
        read_regular_file("a\0b")


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 1])
def test_size_limit_is_inclusive(tmp_path: Path, size: int) -> None:
    """A file of exactly the limit is read whole; one byte more is refused."""
    path = tmp_path / "file"
    path.write_bytes(os.urandom(size))
    assert read_regular_file(path, size) == path.read_bytes()
    with path.open("ab") as file:
        file.write(b"x")
    with pytest.raises(OSError, match=f"larger than {size:,} bytes") as refused:
        read_regular_file(path, size)
    assert refused.value.errno == errno.EFBIG


def test_file_without_a_size_is_bounded_too() -> None:
    """A file of /proc says that it has no bytes; the limit holds for what is read."""
    place = Path("/proc/self/maps")
    if not place.exists():
        pytest.skip("this system has no /proc")
    with pytest.raises(OSError, match="larger than 10 bytes"):
        read_regular_file(place, 10)


def test_links_are_followed_unless_told_otherwise(tmp_path: Path) -> None:
    """A settings file may be a link, as dotfile managers make them."""
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert read_regular_file(tmp_path / "link") == b"text"
    with pytest.raises(OSError, match="link"):
        read_regular_file(tmp_path / "link", follow_links=False)
