"""Whole JSON documents: older transcripts, exports, and the settings of the clients."""

import re
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from brimline.errors import UnreadableTranscript
from brimline.regular_file import MAX_SETTINGS_BYTES, read_regular_file
from brimline.transcripts.chunks import CHUNK_BYTES
from brimline.transcripts.lines import MALFORMED

MAX_DOCUMENT_BYTES = 256 << 20  # a larger document is not read: it would have to be held whole

# What is kept is matched in one run, and each part of it wherever it begins, also without its end.
# A file of a million quotes, or of comments that never end, would otherwise take seconds or hours,
# in which `re` holds the GIL.
_STRING = rb'"(?:[^"\\]++|\\.)*+"?'
_COMMENTS = re.compile(
    rb'((?:[^"/]++|' + _STRING + rb"|/(?![/*]))++)|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?",
    re.DOTALL,
)
_COMMAS = re.compile(rb'((?:[^",]++|' + _STRING + rb"|,(?!\s*[}\]]))++)|,", re.DOTALL)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

T = TypeVar("T")


def decode_record(decoder: "msgspec.json.Decoder[T]", record: bytes | msgspec.Raw) -> T:
    """A record; one that is nested too deeply or is no text is malformed like any other."""
    try:
        return decoder.decode(record)
    except (RecursionError, UnicodeDecodeError) as error:
        raise msgspec.DecodeError(str(error)) from error


def read_whole(path: str, file: BinaryIO) -> bytes:
    """All of a file, which is closed; UnreadableTranscript where it is too large to be held."""
    data = bytearray()
    with file:
        while len(data) <= MAX_DOCUMENT_BYTES and (chunk := file.read(CHUNK_BYTES)):
            data += chunk
    if len(data) > MAX_DOCUMENT_BYTES:
        reason = f"a JSON document of more than {MAX_DOCUMENT_BYTES >> 20} MiB"
        raise UnreadableTranscript(path, reason)
    return bytes(data)


def strip_comments(data: bytes) -> bytes:
    """JSON without the comments and trailing commas that people may write into settings."""
    without_comments = b"".join(_COMMENTS.findall(data.removeprefix(_BYTE_ORDER_MARK)))
    return b"".join(_COMMAS.findall(without_comments))


def read_settings(
    source: Path | bytes, kind: type[T], max_bytes: int = MAX_SETTINGS_BYTES
) -> T | None:
    """A client's settings; what cannot be read or is not as expected tells nothing: not ours."""
    try:
        data = source if isinstance(source, bytes) else read_regular_file(source, max_bytes)
        return _decode_relaxed(data, kind)
    except (OSError, *MALFORMED):
        return None


def _decode_relaxed(data: bytes, kind: type[T]) -> T:
    """A document with comments; strict JSON is tried first, since it is decoded much faster."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.json.decode(strip_comments(data), type=kind)
