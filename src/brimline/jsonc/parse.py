"""Where everything stands in a JSON text: a scanner that gives spans.

It reads JSON as the clients do: some take comments, none of ours takes a comma before a closing
bracket, one takes a byte order mark. What a client would not read is refused with its place.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from brimline.errors import InvalidSettings

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Kind: TypeAlias = Literal["object", "array", "string", "other"]
Steps: TypeAlias = tuple[str | int, ...]
"""The way to a value: keys of objects and places in arrays."""

MARK = "\ufeff"
WHITE = " \t\r\n"
DEEPEST = 200
"""No settings are nested so deeply."""

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//(?:[^\r\n]|\r(?!\n))*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"true|false|null")


class Dialect(msgspec.Struct, frozen=True):
    """What a client takes beside plain JSON."""

    comments: bool = False
    trailing_commas: bool = False
    mark: bool = False


class Value(msgspec.Struct, frozen=True):
    """A value and its span; `scalar` is what it says where it has no children."""

    start: int
    end: int
    kind: Kind
    children: tuple["Child", ...] = ()
    scalar: Json = None

    def get(self, step: str | int) -> "Value | None":
        """What stands under a key, the last where there are several, or at a place."""
        index = self.index(step)
        return None if index is None else self.children[index].value

    def index(self, step: str | int) -> int | None:
        """Which child has this key or this place."""
        wanted = "array" if isinstance(step, int) else "object"
        if self.kind != wanted:
            return None
        if isinstance(step, int):
            return step if 0 <= step < len(self.children) else None
        keys = [child.key for child in self.children]
        return len(keys) - 1 - keys[::-1].index(step) if step in keys else None

    def plain(self) -> Json:
        """The value itself; numbers are floats."""
        if self.kind == "object":
            return {child.key or "": child.value.plain() for child in self.children}
        if self.kind == "array":
            return [child.value.plain() for child in self.children]
        return self.scalar


class Child(msgspec.Struct, frozen=True):
    """A member of an object or an item of an array; `comma` is where the comma after it stands."""

    start: int
    value: Value
    key: str | None = None
    comma: int | None = None


class Document(msgspec.Struct, frozen=True):
    """A text that was scanned; `place` is what errors call it."""

    text: str
    root: Value
    comments: tuple[tuple[int, int], ...]
    dialect: Dialect
    place: str

    def find(self, steps: Steps) -> Value | None:
        """The value at the end of a way; None where there is none."""
        value: Value | None = self.root
        for step in steps:
            value = value.get(step) if value else None
        return value

    def raw(self, value: Value) -> str:
        """A value as it is written."""
        return self.text[value.start : value.end]


def scan(text: str, dialect: Dialect, place: str) -> Document:
    """Scan a text whose value is an object; InvalidSettings tells where it is none."""
    return _Scanner(text, dialect, place, {}).document()


def rescan(document: Document, text: str, start: int, end: int) -> Document:
    """Scan what became of a text by a change from `start` to `end` of it.

    What it gives is what `scan` gives: objects and arrays that stand before the change or after it
    are what they were, and are not gone through again.
    """
    moved = len(text) - len(document.text)
    known: dict[int, _Known] = {}
    for value in _untouched(document.root, start, end):
        by = moved if value.start >= end else 0
        inside = _between(document.comments, value.start, value.end)
        comments = tuple((begin + by, close + by) for begin, close in inside)
        known[value.start + by] = _Known(_moved(value, by), comments)
    return _Scanner(text, document.dialect, document.place, known).document()


def _between(spans: Sequence[tuple[int, int]], start: int, end: int) -> Sequence[tuple[int, int]]:
    """Of spans that are in order, those that begin between two places."""
    return spans[bisect_left(spans, (start, start)) : bisect_left(spans, (end, end))]


class _Known(msgspec.Struct, frozen=True):
    """An object or array that was scanned before, and the comments in it."""

    value: Value
    comments: tuple[tuple[int, int], ...]


def _untouched(container: Value, start: int, end: int) -> Iterator[Value]:
    """The largest objects and arrays that a change leaves as they are."""
    for child in container.children:
        value = child.value
        if value.kind not in ("object", "array"):
            continue
        if value.end <= start or value.start >= end:
            yield value
        else:
            yield from _untouched(value, start, end)


def _moved(value: Value, by: int) -> Value:
    """The same value so much further on."""
    if not by:
        return value
    children = tuple(
        Child(
            child.start + by,
            _moved(child.value, by),
            child.key,
            None if child.comma is None else child.comma + by,
        )
        for child in value.children
    )
    return Value(value.start + by, value.end + by, value.kind, children, value.scalar)


class _Scanner:
    def __init__(
        self, text: str, dialect: Dialect, place: str, known: Mapping[int, _Known]
    ) -> None:
        self._text, self._dialect, self._place = text, dialect, place
        self._known = known
        self._at: int = 0
        self._comments: list[tuple[int, int]] = []

    def document(self) -> Document:
        if self._next == MARK:
            if not self._dialect.mark:
                raise self._error("no byte order mark, which this client does not read")
            self._at += 1
        self._skip()
        if self._next != "{":
            raise self._error("an object in { }")
        root = self._container(0)
        self._skip()
        if self._next:
            raise self._error("the end of the file")
        return Document(self._text, root, tuple(self._comments), self._dialect, self._place)

    @property
    def _next(self) -> str:
        """The next character; nothing at the end."""
        return self._text[self._at : self._at + 1]

    def _skip(self) -> None:
        """Go on to what is neither space nor a comment."""
        while True:
            self._at = self._end_of(_SPACE) or self._at
            found = _COMMENT.match(self._text, self._at) if self._next == "/" else None
            if found is None:
                return
            if not self._dialect.comments:
                raise self._error("no comment, which this client does not read")
            self._comments.append(found.span())
            self._at = found.end()

    def _value(self, depth: int) -> Value:
        self._skip()
        if self._next in ("{", "["):
            return self._again(self._at) or self._container(depth)
        start = self._at
        if end := self._end_of(_STRING):
            return Value(start, end, "string", scalar=self._taken(end))
        if end := self._end_of(_NUMBER):
            self._at = end
            return Value(start, end, "other", scalar=float(self._text[start:end]))
        if end := self._end_of(_WORD):
            return Value(start, end, "other", scalar=self._taken(end))
        raise self._error("a value")

    def _again(self, start: int) -> Value | None:
        """What is known to stand here; it is gone past."""
        known = self._known.get(start)
        if known is None:
            return None
        self._comments += known.comments
        self._at = known.value.end
        return known.value

    def _container(self, depth: int) -> Value:
        if depth == DEEPEST:
            raise self._error(f"no more than {DEEPEST} values inside each other")
        start = self._at
        kind, closing = ("object", "}") if self._next == "{" else ("array", "]")
        self._at += 1
        children: list[Child] = []
        self._skip()
        while self._next != closing:
            if children and children[-1].comma is None:
                raise self._error(f"a comma or {closing}")
            children.append(self._child(kind == "object", depth))
        if children and children[-1].comma is not None and not self._dialect.trailing_commas:
            raise self._error(f"another value: this client reads no comma before {closing}")
        self._at += 1
        return Value(start, self._at, kind, tuple(children))

    def _child(self, keyed: bool, depth: int) -> Child:
        start = self._at
        key = self._key() if keyed else None
        value = self._value(depth + 1)
        self._skip()
        comma = self._at if self._next == "," else None
        if comma is not None:
            self._at += 1
            self._skip()
        return Child(start, value, key, comma)

    def _key(self) -> str:
        end = self._end_of(_STRING)
        if end is None:
            raise self._error('a key in " "')
        key = self._taken(end)
        self._skip()
        if self._next != ":":
            raise self._error("a colon after the key")
        self._at += 1
        return str(key)

    def _taken(self, end: int) -> Json:
        """What the text up to there says; it is gone past."""
        raw, self._at = self._text[self._at : end], end
        if raw[0] == '"' and "\\" not in raw:
            return raw[1:-1]
        told: Json = json.loads(raw)
        return told

    def _end_of(self, pattern: "re.Pattern[str]") -> int | None:
        found = pattern.match(self._text, self._at)
        return found.end() if found else None

    def _error(self, expected: str) -> InvalidSettings:
        line = self._text.count("\n", 0, self._at) + 1
        begin = self._text.rfind("\n", 0, self._at) + 1
        column = len(self._text[begin : self._at].replace(MARK, "")) + 1
        came = repr(self._next) if self._next else "the end of the file"
        where = f"line {line}, column {column}"
        return InvalidSettings(self._place, where, f"expected {expected}: got {came}")
