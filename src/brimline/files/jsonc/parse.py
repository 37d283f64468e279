"""A parser of JSON that keeps the position of every value and comment.

Comments, trailing commas and a byte order mark are accepted only if the dialect has them: a file
that its reader would reject is rejected here too, with line and column.
"""

import json
import re
from typing import Literal, TypeAlias

import msgspec

from brimline.errors import InvalidSettings

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
JsonPath: TypeAlias = tuple[str | int, ...]  # keys of objects and indexes of arrays
Kind: TypeAlias = Literal["object", "array", "string", "other"]

BYTE_ORDER_MARK = "\ufeff"
WHITESPACE = " \t\r\n"
MAX_DEPTH = 200

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//(?:[^\r\n]|\r(?!\n))*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"true|false|null")


class Dialect(msgspec.Struct, frozen=True):
    """What is accepted in addition to plain JSON."""

    comments: bool = False
    trailing_commas: bool = False
    byte_order_mark: bool = False


class Value(msgspec.Struct, frozen=True):
    """A value and its span in the text; `scalar` is set if it is neither object nor array."""

    start: int
    end: int
    kind: Kind
    children: tuple["Child", ...] = ()
    scalar: Json = None

    def get(self, step: str | int) -> "Value | None":
        """Return the child with a key or index; of equal keys the last one counts."""
        index = self.index(step)
        return None if index is None else self.children[index].value

    def index(self, step: str | int) -> int | None:
        """Return the position of the child with a key or index."""
        wanted = "array" if isinstance(step, int) else "object"
        if self.kind != wanted:
            return None
        if isinstance(step, int):
            return step if 0 <= step < len(self.children) else None
        keys = [child.key for child in self.children]
        return len(keys) - 1 - keys[::-1].index(step) if step in keys else None

    def to_python(self) -> Json:
        """Return the value as `json.loads` would, except that all numbers are floats."""
        if self.kind == "object":
            return {child.key or "": child.value.to_python() for child in self.children}
        if self.kind == "array":
            return [child.value.to_python() for child in self.children]
        return self.scalar


class Child(msgspec.Struct, frozen=True):
    """A member of an object or an item of an array; `comma` is the position of the comma after it.

    `start` is that of the key in an object.
    """

    start: int
    value: Value
    key: str | None = None
    comma: int | None = None


class Document(msgspec.Struct, frozen=True):
    """A parsed text; `comments` are spans, `name` is the file's name in errors."""

    text: str
    root: Value
    comments: tuple[tuple[int, int], ...]
    dialect: Dialect
    name: str

    def find(self, path: JsonPath) -> Value | None:
        """Return the value at a path, or None."""
        value: Value | None = self.root
        for step in path:
            value = value.get(step) if value else None
        return value

    def source(self, value: Value) -> str:
        """Return the text of a value."""
        return self.text[value.start : value.end]


def parse(text: str, dialect: Dialect, name: str) -> Document:
    """Parse a text that holds one object; raises InvalidSettings with line and column."""
    return _Parser(text, dialect, name).document()


class _Parser:
    def __init__(self, text: str, dialect: Dialect, name: str) -> None:
        self._text, self._dialect, self._name = text, dialect, name
        self._at: int = 0
        self._comments: list[tuple[int, int]] = []

    def document(self) -> Document:
        if self._next == BYTE_ORDER_MARK:
            if not self._dialect.byte_order_mark:
                raise self._error("no byte order mark")
            self._at += 1
        self._skip_space()
        if self._next != "{":
            raise self._error("an object in { }")
        root = self._container(0)
        self._skip_space()
        if self._next:
            raise self._error("the end of the file")
        return Document(self._text, root, tuple(self._comments), self._dialect, self._name)

    @property
    def _next(self) -> str:
        """The next character; empty at the end."""
        return self._text[self._at : self._at + 1]

    def _skip_space(self) -> None:
        """Skip whitespace and comments."""
        while True:
            self._at = self._end_of(_SPACE) or self._at
            comment = _COMMENT.match(self._text, self._at) if self._next == "/" else None
            if comment is None:
                return
            if not self._dialect.comments:
                raise self._error("no comment in this file")
            self._comments.append(comment.span())
            self._at = comment.end()

    def _value(self, depth: int) -> Value:
        self._skip_space()
        if self._next in ("{", "["):
            return self._container(depth)
        start = self._at
        if end := self._end_of(_STRING):
            return Value(start, end, "string", scalar=self._scalar(end))
        if end := self._end_of(_NUMBER):
            self._at = end
            return Value(start, end, "other", scalar=float(self._text[start:end]))
        if end := self._end_of(_WORD):
            return Value(start, end, "other", scalar=self._scalar(end))
        raise self._error("a value")

    def _container(self, depth: int) -> Value:
        if depth == MAX_DEPTH:
            raise self._error(f"no more than {MAX_DEPTH} values inside each other")
        start = self._at
        kind, closing = ("object", "}") if self._next == "{" else ("array", "]")
        self._at += 1
        children: list[Child] = []
        self._skip_space()
        while self._next != closing:
            if children and children[-1].comma is None:
                raise self._error(f"a comma or {closing}")
            children.append(self._child(kind == "object", depth))
        if children and children[-1].comma is not None and not self._dialect.trailing_commas:
            raise self._error(f"another value: no comma is allowed before {closing} in this file")
        self._at += 1
        return Value(start, self._at, kind, tuple(children))

    def _child(self, keyed: bool, depth: int) -> Child:
        start = self._at
        key = self._key() if keyed else None
        value = self._value(depth + 1)
        self._skip_space()
        comma = self._at if self._next == "," else None
        if comma is not None:
            self._at += 1
            self._skip_space()
        return Child(start, value, key, comma)

    def _key(self) -> str:
        end = self._end_of(_STRING)
        if end is None:
            raise self._error('a key in " "')
        key = self._scalar(end)
        self._skip_space()
        if self._next != ":":
            raise self._error("a colon after the key")
        self._at += 1
        return str(key)

    def _scalar(self, end: int) -> Json:
        """Decode the text up to `end`, and go on from there."""
        source, self._at = self._text[self._at : end], end
        if source[0] == '"' and "\\" not in source:
            return source[1:-1]
        value: Json = json.loads(source)
        return value

    def _end_of(self, pattern: "re.Pattern[str]") -> int | None:
        match = pattern.match(self._text, self._at)
        return match.end() if match else None

    def _error(self, expected: str) -> InvalidSettings:
        line = self._text.count("\n", 0, self._at) + 1
        line_start = self._text.rfind("\n", 0, self._at) + 1
        # Editors do not count a byte order mark as a column.
        column = len(self._text[line_start : self._at].replace(BYTE_ORDER_MARK, "")) + 1
        got = repr(self._next) if self._next else "the end of the file"
        position = f"line {line}, column {column}"
        return InvalidSettings(self._name, position, f"expected {expected}: got {got}")
