"""Hypothesis strategies for JSON files as people write them: comments, spaces, trailing commas."""

import json

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from brimline.files.jsonc import Dialect, Document, JsonPath, Value

PLAIN = Dialect()
RELAXED = Dialect(comments=True, trailing_commas=True, byte_order_mark=True)

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
KEYS = st.one_of(WORDS, st.sampled_from(["hooks", "a", "b", "//", "{", '"', "\n", "é"]))


def spaces(newline: str, comments: bool) -> SearchStrategy[str]:
    """Whitespace and comments between two tokens."""
    parts = [st.sampled_from(["", " ", "  ", "\t", newline, f"{newline}  ", f"{newline}\t"])]
    if comments:
        texts = WORDS.map(lambda text: text.replace("*/", ""))
        parts.append(texts.map(lambda text: f"/*{text} */"))
        parts.append(WORDS.map(lambda text: f"//{text}{newline}"))
        parts.append(WORDS.map(lambda text: f" // {text} {newline}  "))
    return st.lists(st.one_of(parts), max_size=2).map("".join)


def scalars() -> SearchStrategy[str]:
    """A value without children, escaped or not."""
    numbers = st.sampled_from(["0", "-1.5e3", "12345678901234567890", "1E-7"])
    words = st.sampled_from(["true", "false", "null"])
    strings = st.tuples(KEYS, st.booleans()).map(lambda t: json.dumps(t[0], ensure_ascii=t[1]))
    return st.one_of(numbers, words, strings)


@st.composite
def containers(draw: DrawFn, gap: SearchStrategy[str], trailing: bool, depth: int) -> str:
    return draw(
        objects(gap, trailing, depth) if draw(st.booleans()) else arrays(gap, trailing, depth)
    )


@st.composite
def objects(draw: DrawFn, gap: SearchStrategy[str], trailing: bool, depth: int) -> str:
    """An object with different keys."""
    keys = draw(st.lists(KEYS, max_size=3, unique=True))
    members = [
        f"{draw(gap)}{json.dumps(key)}{draw(gap)}:{draw(gap)}{draw(values(gap, trailing, depth))}"
        for key in keys
    ]
    return _closed(draw, "{", "}", members, gap, trailing)


@st.composite
def arrays(draw: DrawFn, gap: SearchStrategy[str], trailing: bool, depth: int) -> str:
    items = draw(st.lists(values(gap, trailing, depth), max_size=3))
    return _closed(draw, "[", "]", [draw(gap) + item for item in items], gap, trailing)


def _closed(
    draw: DrawFn,
    opening: str,
    closing: str,
    parts: list[str],
    gap: SearchStrategy[str],
    trailing: bool,
) -> str:
    inner = ",".join(part + draw(gap) for part in parts)
    comma = "," + draw(gap) if parts and trailing and draw(st.booleans()) else ""
    return opening + (inner + comma if parts else draw(gap)) + closing


def values(gap: SearchStrategy[str], trailing: bool, depth: int) -> SearchStrategy[str]:
    if depth == 0:
        return scalars()
    return st.one_of(scalars(), containers(gap, trailing, depth - 1))


@st.composite
def files(draw: DrawFn, dialect: Dialect) -> str:
    """A whole file that a client with this dialect reads."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    gap = spaces(newline, dialect.comments)
    mark = "\ufeff" if dialect.byte_order_mark and draw(st.booleans()) else ""
    root = draw(objects(gap, dialect.trailing_commas, 3))
    return mark + draw(gap) + root + draw(gap)


def container_paths(
    document: Document, kinds: tuple[str, ...] = ("object", "array")
) -> list[JsonPath]:
    return [path for path, value in _walk(document.root, ()) if value.kind in kinds]


def _walk(value: Value, path: JsonPath) -> list[tuple[JsonPath, Value]]:
    containers_below: list[tuple[JsonPath, Value]] = [(path, value)]
    for index, child in enumerate(value.children):
        step = index if child.key is None else child.key
        containers_below += _walk(child.value, (*path, step))
    return containers_below
