"""Edits in place: members of objects and items of arrays come and go, all else stays as it was.

What an insertion puts in is exactly what the removal takes out, so that the one undoes the other
byte for byte. Every result is scanned: what no client could read is never given back.
"""

import json
import re

import msgspec

from brimline.jsonc.parse import WHITE, Document, Json, Steps, Value, rescan

UNIT = "  "
_INDENT = re.compile(r"[ \t]*")


class _Splice(msgspec.Struct, frozen=True):
    """A span of the text, and what stands there instead."""

    start: int
    end: int
    new: str = ""


def insert(document: Document, steps: Steps, value: Json) -> Document:
    """Put a value at the end of an object, under its last step, or at the end of an array.

    What it is put into must be there, and must not hold it yet.
    """
    *above, last = steps
    container = _there(document, tuple(above))
    member = written(value) if isinstance(last, int) else f"{written(last)}: {written(value)}"
    point = _solid(document.text, container.end - 1)
    if not container.children:
        lead, tail = _opened(document, container)
        return _spliced(document, _Splice(point, point, lead + member + tail))
    lead = _separator(document, container, point)
    before = container.children[-1]
    if before.comma is not None:
        return _spliced(document, _Splice(point, point, f"{lead}{member},"))
    comma = _Splice(before.value.end, before.value.end, ",")
    return _spliced(document, comma, _Splice(point, point, lead + member))


def replace(document: Document, steps: Steps, raw: str) -> Document:
    """Put other JSON in the place of a value that is there."""
    value = _there(document, steps)
    return _spliced(document, _Splice(value.start, value.end, raw))


def remove(document: Document, steps: Steps) -> Document:
    """Take a member or an item out, with its comma and the space before it; comments stay."""
    container = _there(document, steps[:-1])
    index = container.index(steps[-1])
    if index is None:
        raise KeyError(steps)
    child = container.children[index]
    gone = _Splice(_solid(document.text, child.start), child.value.end)
    comma = child.comma
    if comma is None and index > 0:
        comma = container.children[index - 1].comma
    after = gone.end + 1 if child.comma == gone.end else gone.end
    tail = _closing(document, container, after) if len(container.children) == 1 else after
    splices = [_below_comment(document, gone, tail), _Splice(after, tail)]
    if comma is not None:
        splices.append(_Splice(comma, comma + 1))
    return _spliced(document, *splices)


def written(value: Json) -> str:
    """A value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def _there(document: Document, steps: Steps) -> Value:
    value = document.find(steps)
    if value is None:
        raise KeyError(steps)
    return value


def _spliced(document: Document, *splices: _Splice) -> Document:
    parts: list[str] = []
    at = 0
    ordered = sorted(splices, key=lambda one: one.start)
    for splice in ordered:
        parts += [document.text[at : splice.start], splice.new]
        at = splice.end
    text = "".join([*parts, document.text[at:]])
    return rescan(document, text, ordered[0].start, max(splice.end for splice in ordered))


def _solid(text: str, at: int) -> int:
    """Where the space that ends here begins."""
    return len(text[:at].rstrip(WHITE))


def _indent(text: str, at: int) -> str:
    """The space with which the line of a place begins."""
    found = _INDENT.match(text, text.rfind("\n", 0, at) + 1)
    return found[0] if found else ""


def _newline(text: str) -> str:
    """How the text ends its lines, by the first."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _gap(document: Document, container: Value, index: int) -> str:
    """What stands between a child and the comma or bracket before it."""
    comma = container.children[index - 1].comma if index else container.start
    start = container.start if comma is None else comma
    return document.text[start + 1 : container.children[index].start]


def _separator(document: Document, container: Value, point: int) -> str:
    """The space before a further child, as it is before the last one."""
    text, last = document.text, len(container.children) - 1
    start = container.children[last].start
    if "\n" in _gap(document, container, last):
        return _newline(text) + _indent(text, start)
    space = text[_solid(text, start) : start] or ("" if last else " ")
    return _newline(text) + space if _ends_comment(document, point) else space


def _opened(document: Document, container: Value) -> tuple[str, str]:
    """What stands around the first child of an object or array; nothing in a text of one line."""
    text, root = document.text, document.root
    if root.children and "\n" not in document.raw(root):
        return "", ""
    outer = _newline(text) + _indent(text, container.start)
    return outer + _unit(document), outer


def _unit(document: Document) -> str:
    """By how much the text indents."""
    root = document.root
    if root.children and "\n" in _gap(document, root, 0):
        return _indent(document.text, root.children[0].start)
    return UNIT


def _closing(document: Document, container: Value, after: int) -> int:
    """The end of the line break that an insertion puts before the closing bracket, if it is there.

    Only one is taken: an object that was empty over two lines has two of them.
    """
    tail = _newline(document.text) + _indent(document.text, container.start)
    return after + len(tail) if document.text.startswith(tail, after) else after


def _ends_comment(document: Document, at: int) -> bool:
    """Whether what goes on here would go on in a comment that ends with its line."""
    return any(
        start < at <= end and document.text.startswith("//", start)
        for start, end in document.comments
    )


def _below_comment(document: Document, gone: _Splice, after: int) -> _Splice:
    """The same splice, but for the line break that a comment before it needs."""
    text = document.text
    rest = text[after:].lstrip(" \t")
    if not _ends_comment(document, gone.start) or rest.startswith(("\n", "\r\n")):
        return gone
    return _Splice(text.index("\n", gone.start) + 1, gone.end)
