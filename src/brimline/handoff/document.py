"""Read a handoff document, once, when it is handed over."""

import errno
import os
import re
import stat
from hashlib import sha256
from pathlib import Path

import msgspec

from brimline.agents.transcripts.source import to_text
from brimline.errors import InvalidHandoff

MAX_DOCUMENT_BYTES = 256 << 10
CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # no tab, no line break
RECEIVED_FROM = "received from"

# Do not follow a link, and do not block on a pipe.
OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

OWN_FILE_HINT = "Hand over a regular file of your own."
LINK_HINT = "Pass the path of the file itself."
SIZE_HINT = (
    f"A handoff has at most {MAX_DOCUMENT_BYTES >> 10} KiB: keep what matters, refer to the rest."
)
RETRY_HINT = "Hand it over again when the write is finished."
ENCODING_HINT = "Save it as plain text in UTF-8."
EMPTY_HINT = "Write what the next context must know, then hand it over."


class Document(msgspec.Struct, frozen=True):
    """A document as it was when it was read; `sha256` is the hash of its UTF-8 bytes.

    `path` is absolute, with links unresolved; the file is not read again.
    """

    path: str
    text: str
    sha256: str
    size: int
    modified: float

    @classmethod
    def of(cls, text: str, path: str, modified: float) -> "Document":
        """Return a document from a text: a stored one, or a draft."""
        data = text.encode("utf-8", "replace")
        return cls(path, text, sha256(data).hexdigest(), len(data), modified)


def read_document(path: str | Path, *, owner: int | None = None) -> Document:
    """Read a regular file that belongs to the owner, by default this process's user.

    The file must not be a symbolic link; its folders may be (`/tmp` is one on macOS). The opened
    file is checked, so it cannot be replaced in between. Raises InvalidHandoff.
    """
    shown = to_text(os.path.abspath(path))
    opened = _open(path, shown)
    try:
        before = _check_file(opened, shown, os.geteuid() if owner is None else owner)
        data = _read(opened, shown)
        _check_unchanged(before, os.fstat(opened), len(data), shown)
    except OSError as error:
        raise InvalidHandoff(shown, error.strerror or str(error)) from error
    finally:
        os.close(opened)
    text = _decode(data, shown)
    return Document(shown, text, sha256(data).hexdigest(), len(data), before.st_mtime)


def receive_document(text: str, name: str, at: float) -> Document:
    """Return a document that was received as text; raises InvalidHandoff."""
    _check_text(text, name)
    if (match := CONTROL_CHARACTER.search(text)) is not None:
        reason = f"control character U+{ord(match[0]):04X} at position {match.start()}"
        raise InvalidHandoff(name, reason, ENCODING_HINT)
    document = Document.of(text, name, at)
    if document.size > MAX_DOCUMENT_BYTES:
        raise InvalidHandoff(name, f"too large: {document.size:,} bytes", SIZE_HINT)
    return document


def received_from(server: str, name: str) -> str:
    """Return what a document from a server has as its path: where it came from, and its name."""
    return f"{RECEIVED_FROM} {server}: {name or 'handoff.md'}"


def describe_origin(path: str) -> str:
    """Return where a document is from, in words; the path of a file is absolute."""
    return path if path.startswith(RECEIVED_FROM) else f"read from {path}"


def _open(path: str | Path, shown: str) -> int:
    try:
        return os.open(path, OPEN_FLAGS)
    except ValueError as error:
        raise InvalidHandoff(shown, "not a valid path") from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise InvalidHandoff(shown, "it is a symbolic link", LINK_HINT) from error
        raise InvalidHandoff(shown, error.strerror or str(error)) from error


def _check_file(opened: int, shown: str, owner: int) -> os.stat_result:
    """Check type, owner and size of the opened file."""
    status = os.fstat(opened)
    if not stat.S_ISREG(status.st_mode):
        raise InvalidHandoff(shown, "not a regular file", OWN_FILE_HINT)
    if status.st_uid != owner:
        reason = f"it belongs to another user (expected uid {owner}, got {status.st_uid})"
        raise InvalidHandoff(shown, reason, OWN_FILE_HINT)
    if status.st_size > MAX_DOCUMENT_BYTES:
        raise InvalidHandoff(shown, f"too large: {status.st_size:,} bytes", SIZE_HINT)
    return status


def _read(opened: int, shown: str) -> bytes:
    """Read the whole file, up to the limit: it may be growing."""
    data = bytearray()
    while chunk := os.read(opened, MAX_DOCUMENT_BYTES + 1 - len(data)):
        data += chunk
    if len(data) > MAX_DOCUMENT_BYTES:
        raise InvalidHandoff(shown, f"too large: more than {MAX_DOCUMENT_BYTES:,} bytes", SIZE_HINT)
    return bytes(data)


def _check_unchanged(before: os.stat_result, after: os.stat_result, read: int, shown: str) -> None:
    """Check that the file was not written to while it was read."""
    same = before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size == read
    if not same:
        raise InvalidHandoff(shown, "it changed while it was read", RETRY_HINT)


def _decode(data: bytes, shown: str) -> str:
    """Decode strictly: replacing bytes would hand over something else."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidHandoff(
            shown, f"invalid UTF-8 at byte {error.start}", ENCODING_HINT
        ) from error
    _check_text(text, shown)
    return text


def _check_text(text: str, shown: str) -> None:
    if "\0" in text:
        raise InvalidHandoff(
            shown, f"NUL character at position {text.index(chr(0))}", ENCODING_HINT
        )
    if not text.strip():
        raise InvalidHandoff(shown, "it is empty", EMPTY_HINT)
