"""A handoff document, read once, when it is handed over."""

import errno
import os
import stat
from hashlib import sha256
from pathlib import Path

import msgspec

from brimline.errors import InvalidHandoff
from brimline.transcripts.source import to_text

LARGEST = 256 << 10
"""So many bytes a document may have."""

WAY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How it is opened: a link is not followed, and a pipe that nobody writes to holds nobody up."""

FILE = "Hand over a file that you wrote yourself."
LINK = "Name the file itself, not a link to it."
SHORTER = f"A handoff has at most {LARGEST >> 10} KiB: say what matters, and where the rest is."
AGAIN = "Hand it over again when it is written."
TEXT = "Write it as plain text in UTF-8."
WORDS = "Write down what the next context must know, then hand it over."


class Document(msgspec.Struct, frozen=True):
    """A document as it was when it was read; `sha256` is that of its bytes, which are the text's.

    `path` is where it was, absolute, with no link in it resolved; what is there later is not asked.
    """

    path: str
    text: str
    sha256: str
    size: int
    modified: float

    @classmethod
    def of(cls, text: str, path: str, modified: float) -> "Document":
        """A document whose text is known already: one that was stored, or a draft."""
        data = text.encode("utf-8", "replace")
        return cls(path, text, sha256(data).hexdigest(), len(data), modified)


def read_document(path: str | Path, *, owner: int | None = None) -> Document:
    """Read a document: a regular file of the owner's, whose default is this process's user.

    The file itself must be no link; the folders above it may be (`/tmp` is one on macOS). What is
    checked is what was opened, so nothing can be put in its place in between. Raises
    InvalidHandoff.
    """
    shown = to_text(os.path.abspath(path))
    opened = _opened(path, shown)
    try:
        before = _sound(opened, shown, os.geteuid() if owner is None else owner)
        data = _read(opened, shown)
        _unmoved(before, os.fstat(opened), len(data), shown)
    except OSError as error:
        raise InvalidHandoff(shown, error.strerror or str(error)) from error
    finally:
        os.close(opened)
    text = _text(data, shown)
    return Document(shown, text, sha256(data).hexdigest(), len(data), before.st_mtime)


def _opened(path: str | Path, shown: str) -> int:
    try:
        return os.open(path, WAY)
    except ValueError as error:
        raise InvalidHandoff(shown, "this can be no path") from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise InvalidHandoff(shown, "it is a link, and none is followed", LINK) from error
        raise InvalidHandoff(shown, error.strerror or str(error)) from error


def _sound(opened: int, shown: str, owner: int) -> os.stat_result:
    """What is open, if it may be a handoff."""
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode):
        raise InvalidHandoff(shown, "it is no regular file", FILE)
    if found.st_uid != owner:
        reason = f"it belongs to another user (expected uid {owner}, got {found.st_uid})"
        raise InvalidHandoff(shown, reason, FILE)
    if found.st_size > LARGEST:
        raise InvalidHandoff(shown, f"it has {found.st_size:,} bytes", SHORTER)
    return found


def _read(opened: int, shown: str) -> bytes:
    """All that is in it; one that grew meanwhile is not read for ever."""
    data = bytearray()
    while chunk := os.read(opened, LARGEST + 1 - len(data)):
        data += chunk
    if len(data) > LARGEST:
        raise InvalidHandoff(shown, f"it has more than {LARGEST:,} bytes", SHORTER)
    return bytes(data)


def _unmoved(before: os.stat_result, after: os.stat_result, read: int, shown: str) -> None:
    """Check that what was read is one state of the file, and not parts of two."""
    same = before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size == read
    if not same:
        raise InvalidHandoff(shown, "it was written to while it was read", AGAIN)


def _text(data: bytes, shown: str) -> str:
    """Its text; other bytes are refused, since to replace them would hand over something else."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidHandoff(shown, f"it is no UTF-8 at byte {error.start}", TEXT) from error
    if "\0" in text:
        raise InvalidHandoff(shown, f"it has a NUL at character {text.index(chr(0))}", TEXT)
    if not text.strip():
        raise InvalidHandoff(shown, "it is empty", WORDS)
    return text
