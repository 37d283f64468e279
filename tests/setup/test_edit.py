"""Edits in place: what is not edited stays as it was, and a removal undoes an insertion."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.jsonc.edit import insert, remove, replace
from brimline.jsonc.parse import Dialect, Document, Steps, Value, scan
from brimline.transcripts.document import strip_comments

from .texts import PLAIN, RELAXED, files, ways

NEW = "\x7f new"
"""A key that no generated text has."""

TEXTS = st.one_of(files(RELAXED), files(PLAIN))


def scanned(text: str, dialect: Dialect = RELAXED) -> Document:
    """A text, scanned."""
    return scan(text, dialect, "settings.json")


def parsed(text: str) -> Any:
    """What another reader makes of a text."""
    return json.loads(strip_comments(text.encode("utf-8")), parse_int=float)


def there(document: Document, way: Steps) -> Value:
    """What stands at the end of a way."""
    value = document.find(way)
    assert value is not None
    return value


def holder(root: Any, way: Steps) -> Any:
    """What stands at the end of a way, in plain objects."""
    for step in way:
        root = root[step]
    return root


@given(text=TEXTS)
def test_scanner_reads_what_another_reader_reads(text: str) -> None:
    """Every value is where another reader finds it."""
    assert scanned(text).root.plain() == parsed(text)


@given(text=TEXTS, data=st.data())
def test_removal_undoes_an_insertion(text: str, data: st.DataObject) -> None:
    """Wherever something is put, the result parses, and without it the text is as it was."""
    before = scanned(text)
    way = data.draw(st.sampled_from(ways(before)))
    container = there(before, way)
    step = NEW if container.kind == "object" else len(container.children)
    after = insert(before, (*way, step), {"type": "command", "args": ["/x y"]})
    expected = parsed(text)
    if isinstance(step, int):
        holder(expected, way).append({"type": "command", "args": ["/x y"]})
    else:
        holder(expected, way)[step] = {"type": "command", "args": ["/x y"]}
    assert parsed(after.text) == expected
    assert remove(after, (*way, step)).text == text


@given(text=files(PLAIN), data=st.data())
def test_plain_json_stays_plain(text: str, data: st.DataObject) -> None:
    """An insertion into plain JSON is plain JSON."""
    before = scanned(text, PLAIN)
    way = data.draw(st.sampled_from(ways(before, ("object",))))
    json.loads(insert(before, (*way, NEW), ["é"]).text)


@given(text=TEXTS, data=st.data())
def test_many_insertions_are_undone(text: str, data: st.DataObject) -> None:
    """Several insertions, taken out last first, leave the text as it was."""
    document = scanned(text)
    done: list[Steps] = []
    for number in range(data.draw(st.integers(1, 4))):
        way = data.draw(st.sampled_from(ways(document, ("object",))))
        done.append((*way, f"{NEW}{number}"))
        document = insert(document, done[-1], {})
    for steps in reversed(done):
        document = remove(document, steps)
    assert document.text == text


@given(text=TEXTS, data=st.data())
def test_removal_takes_one_thing(text: str, data: st.DataObject) -> None:
    """Whatever is taken out, all else is there, and so is every comment outside of it."""
    before = insert(scanned(text), (NEW,), [1, 2])
    way = data.draw(st.sampled_from([w for w in ways(before) if there(before, w).children]))
    container = there(before, way)
    index = data.draw(st.integers(0, len(container.children) - 1))
    child = container.children[index]
    step = index if child.key is None else child.key
    after = remove(before, (*way, step))
    expected = parsed(before.text)
    del holder(expected, way)[step]
    assert parsed(after.text) == expected
    kept = [(a, b) for a, b in before.comments if b <= child.start or a >= child.value.end]
    assert [after.text[a:b].rstrip() for a, b in after.comments] == [
        before.text[a:b].rstrip() for a, b in kept
    ]


@given(text=TEXTS, data=st.data())
def test_replacement_touches_one_span(text: str, data: st.DataObject) -> None:
    """Before and after a value that is replaced, every character stays."""
    before = insert(scanned(text), (NEW,), [1, 2])
    value = there(before, way := data.draw(st.sampled_from(ways(before)[1:])))
    after = replace(before, way, '"new"')
    assert after.text == before.text[: value.start] + '"new"' + before.text[value.end :]


@given(text=TEXTS, data=st.data())
def test_edited_is_as_if_scanned(text: str, data: st.DataObject) -> None:
    """After every edit each value and each comment is where a scan of the text finds it."""
    document = insert(scanned(text), (NEW,), [[1], {"a": []}])
    for _ in range(data.draw(st.integers(1, 3))):
        way = data.draw(st.sampled_from(ways(document)))
        last = len(there(document, way).children)
        step = last if there(document, way).kind == "array" else data.draw(st.text(max_size=2))
        if document.find((*way, step)) is None:
            document = insert(document, (*way, step), {"k": [1]})
        elif data.draw(st.booleans()):
            document = replace(document, (*way, step), "[[], {}]")
        else:
            document = remove(document, (*way, step))
        assert document == scanned(document.text)


@pytest.mark.parametrize("first", [False, True])
def test_large_neighbours_are_not_read_again(first: bool) -> None:
    """What stands before an edit is what it was; what stands after it only moved."""
    large = json.dumps([{"n": number} for number in range(100)])
    text = f'{{"k": {{}}, "large": {large}}}' if first else f'{{"large": {large}, "k": {{}}}}'
    before = scanned(text)
    after = insert(before, ("k", "new"), 1)
    assert after == scanned(after.text)
    assert (after.find(("large",)) is before.find(("large",))) is not first


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
def test_insertion_looks_like_its_neighbours(text: str, steps: Steps, expected: str) -> None:
    """A new member or item is indented, broken and ended as those beside it."""
    assert insert(scanned(text), steps, 1).text == expected


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
def test_removal_by_hand(text: str, steps: Steps, expected: str) -> None:
    """What people wrote is taken out so that the rest can be read; of two, the one that counts."""
    assert remove(scanned(text), steps).text == expected


@pytest.mark.parametrize("steps", [("k",), ("a", 5), ("a", "k"), ("a", 0, 0)])
def test_nothing_there(steps: Steps) -> None:
    """What is not there cannot be taken out or replaced."""
    with pytest.raises(KeyError):
        remove(scanned('{"a": [1]}'), steps)
    with pytest.raises(KeyError):
        replace(scanned('{"a": [1]}'), steps, "1")
