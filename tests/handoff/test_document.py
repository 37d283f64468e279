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
    path = tmp_path / "handoff.md"
    path.write_text("Go on with the parser.\r\nÜber alles.\n", "utf-8", newline="")
    return path


def refused(path: str | Path, owner: int | None = None) -> InvalidHandoff:
    """The reason why a path is refused."""
    with pytest.raises(InvalidHandoff) as raised:
        read_document(path, owner=owner)
    return raised.value


def test_document_has_text_hash_and_time(file: Path) -> None:
    os.utime(file, (5, 7))
    document = read_document(file)
    data = file.read_bytes()
    assert document == Document(
        str(file), data.decode(), sha256(data).hexdigest(), len(data), modified=7.0
    )


def test_document_from_stored_text_is_equal(file: Path) -> None:
    document = read_document(str(file))
    assert Document.of(document.text, document.path, document.modified) == document


def test_later_writes_do_not_change_the_document(file: Path) -> None:
    document = read_document(file)
    file.write_text("Something else.")
    assert "parser" in document.text


def test_relative_path_becomes_absolute(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    assert read_document(file.name).path == str(file)


def test_too_large_file_is_refused(file: Path) -> None:
    """A document of the largest size is read; one more byte is refused."""
    file.write_bytes(b"x" * MAX_DOCUMENT_BYTES)
    assert read_document(file).size == MAX_DOCUMENT_BYTES
    file.write_bytes(b"x" * (MAX_DOCUMENT_BYTES + 1))
    error = refused(file)
    assert error.reason == "too large: 262,145 bytes"
    assert "at most 256 KiB" in (error.hint or "")


def test_link_is_refused(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    for target in (file, tmp_path / "nowhere", link):
        link.symlink_to(target)
        assert refused(link).reason == "it is a symbolic link"
        link.unlink()


def test_linked_folder_is_accepted(file: Path, tmp_path: Path) -> None:
    """System folders may be links."""
    below = tmp_path / "below"
    below.symlink_to(tmp_path, target_is_directory=True)
    assert read_document(below / file.name).path == str(below / file.name)


def test_folder_or_pipe_is_refused_without_blocking(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        assert refused(path).reason == "not a regular file"


def test_file_of_other_user_is_refused_and_both_are_named(file: Path) -> None:
    here = os.geteuid()
    reason = f"it belongs to another user (expected uid {here + 1}, got {here})"
    assert refused(file, owner=here + 1).reason == reason


def test_missing_file_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere").reason == "No such file or directory"
    assert refused("a\0b").reason == "not a valid path"


@pytest.mark.usefixtures("without_privileges")
def test_unreadable_file_is_refused(file: Path) -> None:
    file.chmod(0)
    assert refused(file).reason == "Permission denied"


@pytest.mark.parametrize("data", [b"", b" \n\t\n"])
def test_empty_file_is_refused(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    assert refused(file).reason == "it is empty"


def test_invalid_utf_8_is_refused_with_its_position(file: Path) -> None:
    file.write_bytes(b"ab\xff")
    assert refused(file).reason == "invalid UTF-8 at byte 2"
    file.write_bytes(b"abc\0")
    assert refused(file).reason == "NUL character at position 3"


LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="needs a file whose size is unknown: /proc"
)


@LINUX
def test_file_changed_during_read_is_refused() -> None:
    assert refused("/proc/self/status").reason == "it changed while it was read"


@LINUX
def test_growing_file_is_not_read_beyond_the_limit() -> None:
    ways = (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)
    mappings = [mmap.mmap(-1, mmap.PAGESIZE, prot=ways[number % 2]) for number in range(1_500)]
    assert refused("/proc/self/smaps").reason == "too large: more than 262,144 bytes"
    for mapping in mappings:
        mapping.close()


@LINUX
def test_read_error_is_reported_with_its_reason() -> None:
    assert refused("/proc/self/mem").reason == "Input/output error"
