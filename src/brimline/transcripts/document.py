"""Whole JSON documents: older transcripts, exports, and the settings of the clients."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from brimline.errors import UnreadableTranscript
from brimline.events import AnyEvent
from brimline.regular_file import MAX_SETTINGS_BYTES, read_regular_file
from brimline.transcripts.chunks import CHUNK_BYTES
from brimline.transcripts.source import MALFORMED, START, Cursor, Events, Tally

MAX_DOCUMENT_BYTES = 256 << 20  # a larger document is not read: it would have to be held whole

# Each match takes as much text as it can without backtracking, and strings and comments also match
# without their ends. Otherwise a file of a million quotes, or of comments that never end, would
# take seconds or hours, during which `re` holds the GIL.
_STRING = rb'"(?:[^"\\]++|\\.)*+"?'
_COMMENTS = re.compile(
    rb'((?:[^"/]++|' + _STRING + rb"|/(?![/*]))++)|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?",
    re.DOTALL,
)
_COMMAS = re.compile(rb'((?:[^",]++|' + _STRING + rb"|,(?!\s*[}\]]))++)|,", re.DOTALL)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

T = TypeVar("T")


class DocumentReader:
    """The events of one JSON document, if it is not the one of the cursor; a Reader.

    A document that is cut off (the client is writing it) counts as malformed, and the cursor stays
    where it was, so that the next read tries again.
    """

    def __init__(
        self,
        path: str,
        file: BinaryIO,
        parse: Callable[[bytes, Tally], Events | None],
        cursor: Cursor = START,
    ) -> None:
        self._path, self._file, self._parse = path, file, parse
        self.cursor = cursor
        self.tally = Tally()

    def __iter__(self) -> Iterator[AnyEvent]:
        data = read_whole(self._path, self._file)
        cursor = Cursor(len(data), blake2b(data, digest_size=8).digest())
        if cursor == self.cursor:
            return
        parse = partial(self._parse, data, self.tally)
        events = self.tally.read(parse, f"the document of {len(data)} bytes")
        if not self.tally.malformed:
            self.cursor = cursor
        yield from events


def read_whole(path: str, file: BinaryIO) -> bytes:
    """Read and close a file; raises UnreadableTranscript if it is too large to be held."""
    data = bytearray()
    with file:
        while len(data) <= MAX_DOCUMENT_BYTES and (chunk := file.read(CHUNK_BYTES)):
            data += chunk
    if len(data) > MAX_DOCUMENT_BYTES:
        reason = f"a JSON document of more than {MAX_DOCUMENT_BYTES >> 20} MiB"
        raise UnreadableTranscript(path, reason)
    return bytes(data)


def strip_comments(data: bytes) -> bytes:
    """Remove the comments and trailing commas that people may write into settings."""
    without_comments = b"".join(_COMMENTS.findall(data.removeprefix(_BYTE_ORDER_MARK)))
    return b"".join(_COMMAS.findall(without_comments))


def read_settings(
    source: Path | bytes, kind: type[T], max_bytes: int = MAX_SETTINGS_BYTES
) -> T | None:
    """Read a client's settings; None if they are unreadable or malformed: not ours to report."""
    try:
        data = source if isinstance(source, bytes) else read_regular_file(source, max_bytes)
        return _decode_relaxed(data, kind)
    except (OSError, *MALFORMED):
        return None


def _decode_relaxed(data: bytes, kind: type[T]) -> T:
    try:  # strict JSON first: it is decoded much faster
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.json.decode(strip_comments(data), type=kind)
