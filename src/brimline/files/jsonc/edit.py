"""Edits of a document: members and items are added and removed, all else stays as it was.

A removal takes out exactly what the insertion put in, so that it restores the text byte for byte.
Every result is parsed: an edit never returns a text that its reader would reject.
"""

import json
import re

import msgspec

from brimline.files.jsonc.parse import WHITESPACE, Document, Json, JsonPath, Value, parse

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
