"""A handoff is a regular file of the user's own, read once."""

import mmap
import os
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from brimline.errors import InvalidHandoff
from brimline.handoff import MAX_DOCUMENT_BYTES, Document, read_document


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A document."""
    path = tmp_path / "handoff.md"
    path.write_text("Go on with the parser.\r\nÜber alles.\n", "utf-8", newline="")
    return path


def refused(path: str | Path, owner: int | None = None) -> InvalidHandoff:
    """Why a path is no handoff."""
    with pytest.raises(InvalidHandoff) as raised:
        read_document(path, owner=owner)
    return raised.value


def test_what_is_taken(file: Path) -> None:
    """A document has its text, the hash and size of its bytes, its place and its time."""
    os.utime(file, (5, 7))
    taken = read_document(file)
    data = file.read_bytes()
    assert taken == Document(
        str(file), data.decode(), sha256(data).hexdigest(), len(data), modified=7.0
    )


def test_the_text_is_all_that_counts(file: Path) -> None:
    """A document made from a stored text is the one that was taken."""
    taken = read_document(str(file))
    assert Document.of(taken.text, taken.path, taken.modified) == taken


def test_read_once(file: Path) -> None:
    """What is written to the file later does not reach what was taken."""
    taken = read_document(file)
    file.write_text("Something else.")
    assert "parser" in taken.text


def test_a_relative_path(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path from the working folder is kept as an absolute one."""
    monkeypatch.chdir(file.parent)
    assert read_document(file.name).path == str(file)


def test_largest(file: Path) -> None:
    """A document of the largest size is taken, and one with a byte more is not."""
    file.write_bytes(b"x" * MAX_DOCUMENT_BYTES)
    assert read_document(file).size == MAX_DOCUMENT_BYTES
    file.write_bytes(b"x" * (MAX_DOCUMENT_BYTES + 1))
    error = refused(file)
    assert error.reason == "too large: 262,145 bytes"
    assert "at most 256 KiB" in (error.hint or "")


def test_a_link(file: Path, tmp_path: Path) -> None:
    """A link is not followed, whatever it leads to."""
    link = tmp_path / "link"
    for target in (file, tmp_path / "nowhere", link):
        link.symlink_to(target)
        assert refused(link).reason == "it is a symbolic link"
        link.unlink()


def test_a_folder_that_is_a_link(file: Path, tmp_path: Path) -> None:
    """The folders above a document may be links: those of a system are."""
    below = tmp_path / "below"
    below.symlink_to(tmp_path, target_is_directory=True)
    assert read_document(below / file.name).path == str(below / file.name)


def test_no_regular_file(tmp_path: Path) -> None:
    """A folder or a pipe is none, and a pipe that nobody writes to holds nobody up."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        assert refused(path).reason == "not a regular file"


def test_somebody_else(file: Path) -> None:
    """A file of another user is refused, and both are named."""
    here = os.geteuid()
    reason = f"it belongs to another user (expected uid {here + 1}, got {here})"
    assert refused(file, owner=here + 1).reason == reason


def test_not_there(tmp_path: Path) -> None:
    """A path with nothing at it, or that can be none, says so."""
    assert refused(tmp_path / "nowhere").reason == "No such file or directory"
    assert refused("a\0b").reason == "not a valid path"


@pytest.mark.usefixtures("ordinary")
def test_unreadable(file: Path) -> None:
    """A file that may not be read says so."""
    file.chmod(0)
    assert refused(file).reason == "Permission denied"


@pytest.mark.parametrize("data", [b"", b" \n\t\n"])
def test_empty(file: Path, data: bytes) -> None:
    """A document without a word is none."""
    file.write_bytes(data)
    assert refused(file).reason == "it is empty"


def test_no_text(file: Path) -> None:
    """Other bytes than UTF-8's are refused with their place, and not replaced."""
    file.write_bytes(b"ab\xff")
    assert refused(file).reason == "invalid UTF-8 at byte 2"
    file.write_bytes(b"abc\0")
    assert refused(file).reason == "NUL character at position 3"


LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="needs a file whose size is not told: /proc"
)


@LINUX
def test_not_one_state() -> None:
    """What was read must be what the file says of itself: else it was written to meanwhile."""
    assert refused("/proc/self/status").reason == "it changed while it was read"


@LINUX
def test_grows_for_ever() -> None:
    """A file that has more than it said is not read to its end."""
    ways = (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)
    held = [mmap.mmap(-1, mmap.PAGESIZE, prot=ways[number % 2]) for number in range(1_500)]
    assert refused("/proc/self/smaps").reason == "too large: more than 262,144 bytes"
    for one in held:
        one.close()


@LINUX
def test_fails_while_it_is_read() -> None:
    """A file that cannot be read although it is open says why."""
    assert refused("/proc/self/mem").reason == "Input/output error"
