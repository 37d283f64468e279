"""Edits change only what they are about, and a removal undoes an insertion."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.transcripts.client_settings import strip_comments
from brimline.files.jsonc import Dialect, Document, JsonPath, Value, insert, parse, remove, replace

from .jsonc_texts import PLAIN, RELAXED, container_paths, files

NEW = "\x7f new"  # a key that no generated text has

TEXTS = st.one_of(files(RELAXED), files(PLAIN))


def parse_text(text: str, dialect: Dialect = RELAXED) -> Document:
    return parse(text, dialect, "settings.json")


def load_json(text: str) -> Any:
    """The value that the `json` module reads from a text."""
    return json.loads(strip_comments(text.encode("utf-8")), parse_int=float)


def value_at(document: Document, path: JsonPath) -> Value:
    """The value at a path, which must exist."""
    value = document.find(path)
    assert value is not None
    return value


def item_at(root: Any, path: JsonPath) -> Any:
    """The item at a path of plain Python objects."""
    for step in path:
        root = root[step]
    return root


@given(text=TEXTS)
def test_parser_agrees_with_json_module(text: str) -> None:
    assert parse_text(text).root.to_python() == load_json(text)


@given(text=TEXTS, data=st.data())
def test_removal_undoes_an_insertion_anywhere(text: str, data: st.DataObject) -> None:
    before = parse_text(text)
    path = data.draw(st.sampled_from(container_paths(before)))
    container = value_at(before, path)
    step = NEW if container.kind == "object" else len(container.children)
    after = insert(before, (*path, step), {"type": "command", "args": ["/x y"]})
    expected = load_json(text)
    if isinstance(step, int):
        item_at(expected, path).append({"type": "command", "args": ["/x y"]})
    else:
        item_at(expected, path)[step] = {"type": "command", "args": ["/x y"]}
    assert load_json(after.text) == expected
    assert remove(after, (*path, step)).text == text


@given(text=files(PLAIN), data=st.data())
def test_plain_json_stays_plain(text: str, data: st.DataObject) -> None:
    before = parse_text(text, PLAIN)
    path = data.draw(st.sampled_from(container_paths(before, ("object",))))
    json.loads(insert(before, (*path, NEW), ["é"]).text)


@given(text=TEXTS, data=st.data())
def test_many_insertions_are_undone(text: str, data: st.DataObject) -> None:
    document = parse_text(text)
    inserted: list[JsonPath] = []
    for number in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(container_paths(document, ("object",))))
        inserted.append((*path, f"{NEW}{number}"))
        document = insert(document, inserted[-1], {})
    for steps in reversed(inserted):
        document = remove(document, steps)
    assert document.text == text


@given(text=TEXTS, data=st.data())
def test_removal_keeps_other_values_and_comments(text: str, data: st.DataObject) -> None:
    before = insert(parse_text(text), (NEW,), [1, 2])
    path = data.draw(
        st.sampled_from([w for w in container_paths(before) if value_at(before, w).children])
    )
    container = value_at(before, path)
    index = data.draw(st.integers(0, len(container.children) - 1))
    child = container.children[index]
    step = index if child.key is None else child.key
    after = remove(before, (*path, step))
    expected = load_json(before.text)
    del item_at(expected, path)[step]
    assert load_json(after.text) == expected
    comments_left = [(a, b) for a, b in before.comments if b <= child.start or a >= child.value.end]
    assert [after.text[a:b].rstrip() for a, b in after.comments] == [
        before.text[a:b].rstrip() for a, b in comments_left
    ]


@given(text=TEXTS, data=st.data())
def test_replacement_touches_one_span(text: str, data: st.DataObject) -> None:
    before = insert(parse_text(text), (NEW,), [1, 2])
    value = value_at(before, path := data.draw(st.sampled_from(container_paths(before)[1:])))
    after = replace(before, path, '"new"')
    assert after.text == before.text[: value.start] + '"new"' + before.text[value.end :]


@pytest.mark.parametrize(
    ("text", "steps", "expected"),
    [
        ("{}", ("k",), '{\n  "k": 1\n}'),
        ("{}\n", ("k",), '{\n  "k": 1\n}\n'),
        ("{}\r\n", ("k",), '{\r\n  "k": 1\r\n}\r\n'),
        ('{"a": 2}', ("k",), '{"a": 2, "k": 1}'),
        ('{"a":2,"b":3}', ("k",), '{"a":2,"b":3,"k": 1}'),
        ('{\n\t"a": 2\n}', ("k",), '{\n\t"a": 2,\n\t"k": 1\n}'),
        ('{\n\t"a": {}\n}', ("a", "k"), '{\n\t"a": {\n\t\t"k": 1\n\t}\n}'),
        ('{"a": {}}', ("a", "k"), '{"a": {"k": 1}}'),
        ('{\n    "a": [2]\n}', ("a", 1), '{\n    "a": [2, 1]\n}'),
        ('{\n  "a": 2 // two\n}', ("k",), '{\n  "a": 2, // two\n  "k": 1\n}'),
        ('{"a": 2 // two\n}', ("k",), '{"a": 2, // two\n "k": 1\n}'),
        ('{\n  "a": 2,\n}', ("k",), '{\n  "a": 2,\n  "k": 1,\n}'),
        ('{\n  /* a */ "a": 2\n}', ("k",), '{\n  /* a */ "a": 2,\n  "k": 1\n}'),
        ('{\n\n  "a": 2,\n\n  "b": 3\n}', ("k",), '{\n\n  "a": 2,\n\n  "b": 3,\n  "k": 1\n}'),
        ('\ufeff{"a": 2}', ("k",), '\ufeff{"a": 2, "k": 1}'),
    ],
)
def test_insertion_is_indented_and_ended_like_its_neighbours(
    text: str, steps: JsonPath, expected: str
) -> None:
    assert insert(parse_text(text), steps, 1).text == expected


@pytest.mark.parametrize(
    ("text", "steps", "expected"),
    [
        ('{\n  "k": 1\n}', ("k",), "{}"),
        ('{ "k": 1, "a": 2 }', ("k",), '{ "a": 2 }'),
        ('{ "a": 2, "k": 1 }', ("k",), '{ "a": 2 }'),
        ('{ "a": 2, "k": 1, }', ("k",), '{ "a": 2, }'),
        ('{ "a": 2, // two\n  "k": 1 }', ("k",), '{ "a": 2 // two\n }'),
        ('{ // first\n "k": 1, "a": 2 }', ("k",), '{ // first\n "a": 2 }'),
        ('{ "k": 1 /* one */, "a": 2 }', ("k",), '{ /* one */ "a": 2 }'),
        ('{ "k": 0, "k": 1 }', ("k",), '{ "k": 0 }'),
        ('{"a": [1, 2, 3]}', ("a", 1), '{"a": [1, 3]}'),
    ],
)
def test_removal_leaves_valid_text_and_takes_the_last_of_equal_keys(
    text: str, steps: JsonPath, expected: str
) -> None:
    assert remove(parse_text(text), steps).text == expected


@pytest.mark.parametrize("steps", [("k",), ("a", 5), ("a", "k"), ("a", 0, 0)])
def test_missing_value_cannot_be_removed_or_replaced(steps: JsonPath) -> None:
    with pytest.raises(KeyError):
        remove(parse_text('{"a": [1]}'), steps)
    with pytest.raises(KeyError):
        replace(parse_text('{"a": [1]}'), steps, "1")
