"""Whole JSON documents: older transcripts, exports, and the settings of the clients."""

import re
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from brimline.errors import UnreadableTranscript
from brimline.sources.lines import MALFORMED
from brimline.sources.scan import CHUNK

LARGEST = 256 << 20
"""A larger document is not read: it would have to be held whole."""

_COMMENT = re.compile(rb'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(rb'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
_MARK = b"\xef\xbb\xbf"

T = TypeVar("T")


def decoded(decoder: "msgspec.json.Decoder[T]", record: bytes | msgspec.Raw) -> T:
    """A record; one that is nested too deeply or is no text is malformed like any other."""
    try:
        return decoder.decode(record)
    except (RecursionError, UnicodeDecodeError) as error:
        raise msgspec.DecodeError(str(error)) from error


def whole(path: str, file: BinaryIO) -> bytes:
    """All of a file, which is closed; UnreadableTranscript where it is too large to be held."""
    data = bytearray()
    with file:
        while len(data) <= LARGEST and (chunk := file.read(CHUNK)):
            data += chunk
    if len(data) > LARGEST:
        reason = f"a JSON document of more than {LARGEST >> 20} MiB"
        raise UnreadableTranscript(path, reason)
    return bytes(data)


def relaxed(data: bytes) -> bytes:
    """JSON without the comments and trailing commas that people may write into settings."""
    return _COMMA.sub(rb"\1", _COMMENT.sub(rb"\1", data.removeprefix(_MARK)))


def told(source: Path | bytes, kind: type[T]) -> T | None:
    """A client's settings; what cannot be read or is not as expected tells nothing: not ours."""
    try:
        data = source if isinstance(source, bytes) else source.read_bytes()
        return msgspec.json.decode(relaxed(data), type=kind)
    except (OSError, *MALFORMED):
        return None
