"""The settings of the clients: JSON, with comments if a person wrote them."""

import re
from pathlib import Path
from typing import TypeVar

from brimline.errors import MalformedJson, UnexpectedJson
from brimline.foreign_json import decode_json
from brimline.regular_file import MAX_SETTINGS_BYTES, read_regular_file
from brimline.transcripts.source import MALFORMED

# Each match takes as much text as it can without backtracking, and strings and comments also match
# without their ends. Otherwise a file of a million quotes, or of comments that never end, would
# take seconds or hours, during which `re` holds the GIL.
_STRING = rb'"(?:[^"\\]++|\\.)*+"?'
_COMMENTS = (
    rb'((?:[^"/]++|' + _STRING + rb"|/(?![/*]))++)|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?"
)
_COMMAS = rb'((?:[^",]++|' + _STRING + rb"|,(?!\s*[}\]]))++)|,"

T = TypeVar("T")


def strip_comments(data: bytes) -> bytes:
    """Remove the comments and trailing commas that people may write into settings."""
    for pattern in (_COMMENTS, _COMMAS):  # compiled at first use: most settings are strict JSON
        data = b"".join(re.findall(pattern, data, re.DOTALL))
    return data


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
        return decode_json(data, kind)
    except UnexpectedJson:
        raise
    except MalformedJson:
        return decode_json(strip_comments(data), kind)
