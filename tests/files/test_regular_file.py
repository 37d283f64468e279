"""Regular files: anything else is refused at once, and too large ones are not read."""

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from brimline.files.regular_file import CHUNK_BYTES, open_regular_file, read_regular_file


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unix_socket:
        unix_socket.bind(str(path))


def make_link_loop(path: Path) -> None:
    path.symlink_to(path)


def make_dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("nothing"))


def make_nothing(path: Path) -> None: ...


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
def test_anything_but_a_regular_file_is_refused_without_blocking(
    tmp_path: Path, make: Callable[[Path], None], number: int
) -> None:
    path = tmp_path / "file"
    make(path)
    with pytest.raises(OSError, match=str(path)) as refused:
        read_regular_file(path)
    assert refused.value.errno == number


class ReplacedPath(os.PathLike[str]):
    """A path that leads to one file when it is checked, and to another when it is opened."""

    def __init__(self, checked: Path, opened: Path) -> None:
        self.checked, self.opened = iter([checked]), opened

    def __fspath__(self) -> str:
        return str(next(self.checked, self.opened))


def test_file_replaced_by_a_fifo_after_the_check_is_refused(tmp_path: Path) -> None:
    """The type is checked again on the opened file."""
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(OSError, match="not a regular file"):
        open_regular_file(ReplacedPath(tmp_path / "file", tmp_path / "fifo"))
    assert len(os.listdir("/dev/fd")) == before


def test_file_replaced_by_a_link_after_the_check_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(OSError) as refused:
        open_regular_file(ReplacedPath(tmp_path / "file", tmp_path / "link"), follow_links=False)
    assert refused.value.errno == errno.ELOOP


@pytest.mark.usefixtures("without_privileges")
def test_unreadable_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(mode=0o000)
    with pytest.raises(PermissionError):
        read_regular_file(path)


def test_path_with_nul_is_an_oserror() -> None:
    with pytest.raises(OSError, match="not a path"):
        read_regular_file("a\0b")


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 1])
def test_size_limit_is_inclusive(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(size))
    assert read_regular_file(path, size) == path.read_bytes()
    with path.open("ab") as file:
        file.write(b"x")
    with pytest.raises(OSError, match=f"larger than {size:,} bytes") as refused:
        read_regular_file(path, size)
    assert refused.value.errno == errno.EFBIG


def test_file_without_a_size_is_bounded_too() -> None:
    """A file of /proc has size 0; the limit applies to the bytes read."""
    place = Path("/proc/self/maps")
    if not place.exists():
        pytest.skip("this system has no /proc")
    with pytest.raises(OSError, match="larger than 10 bytes"):
        read_regular_file(place, 10)


def test_links_are_followed_unless_told_otherwise(tmp_path: Path) -> None:
    """Dotfile managers make settings files links."""
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert read_regular_file(tmp_path / "link") == b"text"
    with pytest.raises(OSError, match="link"):
        read_regular_file(tmp_path / "link", follow_links=False)
