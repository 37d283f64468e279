"""JSON that other programs wrote: transcripts, settings, hooks, requests, replies of servers.

Only this module decodes it, so that every way in which that fails is known in one place. What
Brimline wrote itself, such as its state files, is decoded with msgspec directly.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar, overload

import msgspec

from brimline.errors import MalformedJson, UnexpectedJson

T = TypeVar("T")
JsonData: TypeAlias = bytes | memoryview | msgspec.Raw | str

ABSENT = msgspec.Raw()  # the value of a field that is not there

# Some editors and shells put it before a text.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Bytes between records; a crash can leave NUL bytes at the end of a file.
PADDING = b" \t\r\n\0" + BYTE_ORDER_MARK
_PADDING_TEXT = PADDING.decode()
# Those of msgspec and UnicodeDecodeError are ValueErrors.
FAILURES = (ValueError, RecursionError)


def _describe(error: Exception) -> MalformedJson:
    match error:
        case msgspec.ValidationError():
            return UnexpectedJson(str(error))
        case UnicodeDecodeError():
            return MalformedJson(f"not UTF-8: byte 0x{error.object[error.start]:02x} in a text")
        case RecursionError():
            return MalformedJson("nested too deeply")
        case _:
            return MalformedJson(str(error))


def _decode_stripped(decode: Callable[[Any], T], data: JsonData, error: Exception) -> T:
    """Decode again without a byte order mark and NULs, if there are any; raises MalformedJson."""
    view = memoryview(b"" if isinstance(data, str) else data)
    is_padded = bytes(view[:3]).startswith((BYTE_ORDER_MARK, b"\0")) or bytes(view[-1:]) == b"\0"
    if not is_padded:
        raise _describe(error) from error
    try:
        return decode(bytes(view).strip(PADDING))
    except FAILURES as other_error:
        raise _describe(other_error) from other_error


class JsonDecoder(Generic[T]):
    """Decodes JSON into one type; raises MalformedJson and nothing else."""

    @overload
    def __init__(self, kind: type[T]) -> None: ...
    @overload
    def __init__(self: "JsonDecoder[Any]", kind: Any) -> None: ...  # a union
    def __init__(self, kind: Any) -> None:
        self._decode = msgspec.json.Decoder(kind).decode

    def decode(self, data: JsonData) -> T:
        try:
            return self._decode(data)
        except FAILURES as error:
            return _decode_stripped(self._decode, data, error)

    def decode_or_none(self, data: JsonData) -> T | None:
        """Decode JSON; None if that fails."""
        try:
            return self.decode(data)
        except MalformedJson:
            return None


@overload
def decode_json(data: JsonData, kind: type[T]) -> T: ...
@overload
def decode_json(data: JsonData, kind: Any) -> Any: ...
def decode_json(data: JsonData, kind: Any) -> Any:
    """Decode JSON once; raises MalformedJson."""
    return JsonDecoder(kind).decode(data)


def decode_items(items: Iterable[msgspec.Raw], kind: type[T]) -> list[T]:
    """Decode each item of a list; those that cannot be decoded are left out."""
    decoded = map(JsonDecoder(kind).decode_or_none, items)
    return [item for item in decoded if item is not None]


def _format_compact(data: bytes) -> bytes:
    return msgspec.json.format(data, indent=-1)


def compact_json(data: bytes) -> bytes:
    """Return JSON without blanks between its values; raises MalformedJson."""
    try:
        return _format_compact(data)
    except FAILURES as error:
        return _decode_stripped(_format_compact, data, error)


@cache
def _standard_library() -> "tuple[Callable[[str, int], tuple[Any, int]], Callable[..., str]]":
    import json  # only for broken JSON: it takes time to import

    return json.JSONDecoder().raw_decode, json.dumps


def decode_lenient(data: bytes) -> Any:
    """Decode JSON as Python does, which accepts NaN; raises MalformedJson."""
    decode, _ = _standard_library()
    try:
        text = data.decode("utf-8-sig").strip(" \t\r\n")
        value, end = decode(text, 0)
        if end < len(text):
            raise ValueError("more than one JSON value")
    except FAILURES as error:
        raise _describe(error) from error
    return value


def recover_objects(line: bytes) -> list[bytes]:
    """Return the JSON objects in a line that is not one.

    They may be glued or padded, and have bad UTF-8, or half a character as an escape.
    """
    decode, encode = _standard_library()
    text = line.decode("utf-8", "replace").strip(_PADDING_TEXT)
    objects: list[bytes] = []
    place = 0
    while place < len(text):
        try:
            value, end = decode(text, place)
            found = text[place:end]
            if "\\ud" in found.lower():
                found = encode(value, ensure_ascii=False)
        except FAILURES:
            return []
        if not isinstance(value, dict):
            return []
        objects.append(found.encode("utf-8", "replace"))
        place = end
        while place < len(text) and text[place] in _PADDING_TEXT:
            place += 1
    return objects
