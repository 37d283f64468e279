"""A parser and editor of JSON with comments, which keeps everything that it does not change.

Comments, trailing commas and a byte order mark are accepted only if the dialect has them: a file
that its reader would reject is rejected here too, with line and column.

A removal takes out exactly what the insertion put in, so that it restores the text byte for byte.
Every result is parsed: an edit never returns a text that its reader would reject.
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
    children: tuple["Member", ...] = ()
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


class Member(msgspec.Struct, frozen=True):
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

    @property
    def is_empty(self) -> bool:
        """Whether it has neither values nor comments."""
        return not self.root.children and not self.comments

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
        children: list[Member] = []
        self._skip_space()
        while self._next != closing:
            if children and children[-1].comma is None:
                raise self._error(f"a comma or {closing}")
            children.append(self._child(kind == "object", depth))
        if children and children[-1].comma is not None and not self._dialect.trailing_commas:
            raise self._error(f"another value: no comma is allowed before {closing} in this file")
        self._at += 1
        return Value(start, self._at, kind, tuple(children))

    def _child(self, keyed: bool, depth: int) -> Member:
        start = self._at
        key = self._key() if keyed else None
        value = self._value(depth + 1)
        self._skip_space()
        comma = self._at if self._next == "," else None
        if comma is not None:
            self._at += 1
            self._skip_space()
        return Member(start, value, key, comma)

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


DEFAULT_INDENT = "  "
_INDENT = re.compile(r"[ \t]*")


class _Splice(msgspec.Struct, frozen=True):
    """A span of the text and its replacement."""

    start: int
    end: int
    new: str = ""


def insert(document: Document, path: JsonPath, value: Json) -> Document:
    """Add a value as the last member of an object or the last item of an array.

    The object or array must exist; raises KeyError if not.
    """
    *parents, last = path
    container = _existing(document, tuple(parents))
    member = to_json(value) if isinstance(last, int) else f"{to_json(last)}: {to_json(value)}"
    point = _space_start(document.text, container.end - 1)
    if not container.children:
        lead, tail = _space_in_empty(document, container)
        return _apply(document, _Splice(point, point, lead + member + tail))
    lead = _separator(document, container, point)
    before = container.children[-1]
    if before.comma is not None:
        return _apply(document, _Splice(point, point, f"{lead}{member},"))
    comma = _Splice(before.value.end, before.value.end, ",")
    return _apply(document, comma, _Splice(point, point, lead + member))


def replace(document: Document, path: JsonPath, source: str) -> Document:
    """Replace an existing value by a JSON text; raises KeyError if there is none."""
    value = _existing(document, path)
    return _apply(document, _Splice(value.start, value.end, source))


def remove(document: Document, path: JsonPath) -> Document:
    """Remove a member or item with its comma and the space before it; comments stay.

    Raises KeyError if there is none.
    """
    container = _existing(document, path[:-1])
    index = container.index(path[-1])
    if index is None:
        raise KeyError(path)
    child = container.children[index]
    span = _Splice(_space_start(document.text, child.start), child.value.end)
    comma = child.comma
    if comma is None and index > 0:
        comma = container.children[index - 1].comma
    after = span.end + 1 if child.comma == span.end else span.end
    tail = _closing_space_end(document, container, after) if len(container.children) == 1 else after
    splices = [_below_comment(document, span, tail), _Splice(after, tail)]
    if comma is not None:
        splices.append(_Splice(comma, comma + 1))
    return _apply(document, *splices)


def to_json(value: Json) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def _existing(document: Document, path: JsonPath) -> Value:
    value = document.find(path)
    if value is None:
        raise KeyError(path)
    return value


def _apply(document: Document, *splices: _Splice) -> Document:
    parts: list[str] = []
    at = 0
    for splice in sorted(splices, key=lambda splice: splice.start):
        parts += [document.text[at : splice.start], splice.new]
        at = splice.end
    text = "".join([*parts, document.text[at:]])
    return parse(text, document.dialect, document.name)


def _space_start(text: str, at: int) -> int:
    """Return the start of the whitespace that ends at a position."""
    return len(text[:at].rstrip(WHITESPACE))


def _indent(text: str, at: int) -> str:
    """Return the indentation of the line of a position."""
    match = _INDENT.match(text, text.rfind("\n", 0, at) + 1)
    return match[0] if match else ""


def _newline(text: str) -> str:
    """Return the line ending of the first line."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _gap(document: Document, container: Value, index: int) -> str:
    """Return the text between a child and the comma or bracket before it."""
    comma = container.children[index - 1].comma if index else container.start
    start = container.start if comma is None else comma
    return document.text[start + 1 : container.children[index].start]


def _separator(document: Document, container: Value, point: int) -> str:
    """Return the space before a further child, like that before the last one."""
    text, last = document.text, len(container.children) - 1
    start = container.children[last].start
    if "\n" in _gap(document, container, last):
        return _newline(text) + _indent(text, start)
    space = text[_space_start(text, start) : start] or ("" if last else " ")
    return _newline(text) + space if _ends_comment(document, point) else space


def _space_in_empty(document: Document, container: Value) -> tuple[str, str]:
    """Return the space around the first child of a container; none in a text of one line."""
    text, root = document.text, document.root
    if root.children and "\n" not in document.source(root):
        return "", ""
    outer = _newline(text) + _indent(text, container.start)
    return outer + _indent_unit(document), outer


def _indent_unit(document: Document) -> str:
    root = document.root
    if root.children and "\n" in _gap(document, root, 0):
        return _indent(document.text, root.children[0].start)
    return DEFAULT_INDENT


def _closing_space_end(document: Document, container: Value, after: int) -> int:
    """Return the end of the line break that `insert` puts before a closing bracket, if present.

    Only one line break is taken: an object that was empty over two lines has two.
    """
    tail = _newline(document.text) + _indent(document.text, container.start)
    return after + len(tail) if document.text.startswith(tail, after) else after


def _ends_comment(document: Document, at: int) -> bool:
    """Return whether text that is put here would become part of a `//` comment."""
    return any(
        start < at <= end and document.text.startswith("//", start)
        for start, end in document.comments
    )


def _below_comment(document: Document, span: _Splice, after: int) -> _Splice:
    """Shorten a removal by the line break that a `//` comment before it needs."""
    text = document.text
    rest = text[after:].lstrip(" \t")
    if not _ends_comment(document, span.start) or rest.startswith(("\n", "\r\n")):
        return span
    return _Splice(text.index("\n", span.start) + 1, span.end)
