"""The settings of the clients: JSON, with comments if a person wrote them."""

import os
import re
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from brimline.agents.transcripts.source import MALFORMED
from brimline.context.window import Registry, RegistryModel
from brimline.errors import MalformedJson, UnexpectedJson
from brimline.files.foreign_json import decode_json
from brimline.files.regular_file import MAX_SETTINGS_BYTES, read_regular_file

# Each match takes as much text as it can without backtracking, and strings and comments also match
# without their ends. Otherwise a file of a million quotes, or of comments that never end, would
# take seconds or hours, during which `re` holds the GIL.
_STRING = rb'"(?:[^"\\]++|\\.)*+"?'
_COMMENTS = (
    rb'((?:[^"/]++|' + _STRING + rb"|/(?![/*]))++)|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?"
)
_COMMAS = rb'((?:[^",]++|' + _STRING + rb"|,(?!\s*[}\]]))++)|,"

MAX_REGISTRY_BYTES = 16 << 20  # that of opencode 1.18.18 has 5 MB

T = TypeVar("T")
RegistryRows: TypeAlias = Mapping[str, Mapping[str, RegistryModel]]


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


def read_toml_settings(source: Path, kind: type[T]) -> T | None:
    """Read a client's settings in TOML; None if they are unreadable or malformed."""
    try:
        text = read_regular_file(source).decode()
    except (OSError, ValueError):
        return None
    import tomllib  # most users have no such file

    try:
        return msgspec.convert(tomllib.loads(text), kind)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError):
        return None


def _decode_relaxed(data: bytes, kind: type[T]) -> T:
    try:  # strict JSON first: it is decoded much faster
        return decode_json(data, kind)
    except UnexpectedJson:
        raise
    except MalformedJson:
        return decode_json(strip_comments(data), kind)


def read_registry(path: Path, kind: type[T], rows: Callable[[T], RegistryRows]) -> Registry | None:
    """Read a client's refreshed model registry; None if it is missing or malformed.

    It has megabytes, so it is decoded again only if it has changed.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # a NUL in the path
        return None
    return _read_registry(str(path), kind, rows, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _read_registry(
    path: str, kind: type[Any], rows: Callable[[Any], RegistryRows], modified_ns: int, _: int
) -> Registry | None:
    file = read_settings(Path(path), kind, MAX_REGISTRY_BYTES)
    if file is None:
        return None
    day = time.strftime("%Y-%m-%d", time.localtime(modified_ns / 1e9))
    return Registry(f"refreshed {day}", rows(file))
