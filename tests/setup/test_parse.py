"""The scanner refuses what the client would not read, and says where it stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.errors import InvalidSettings
from brimline.jsonc.parse import DEEPEST, Dialect, scan

from .texts import PLAIN, RELAXED

BROKEN = [
    ("", "line 1, column 1", "expected an object in { }: got the end of the file"),
    ("[]", "line 1, column 1", "expected an object in { }: got '['"),
    ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3", "expected a comma or }: got '\"'"),
    ('{"a": 1', "line 1, column 8", "expected a comma or }: got the end of the file"),
    ('{"a" 1}', "line 1, column 6", "expected a colon after the key: got '1'"),
    ("{a: 1}", "line 1, column 2", "expected a key in \" \": got 'a'"),
    ('{"a": }', "line 1, column 7", "expected a value: got '}'"),
    ('{"a": 01}', "line 1, column 8", "expected a comma or }: got '1'"),
    ('{"a": "x}', "line 1, column 7", "expected a value: got '\"'"),
    ('{"a": "\t"}', "line 1, column 7", "expected a value: got '\"'"),
    ("{\"a\": 'x'}", "line 1, column 7", 'expected a value: got "\'"'),
    ('{"a": NaN}', "line 1, column 7", "expected a value: got 'N'"),
    ("{} {}", "line 1, column 4", "expected the end of the file: got '{'"),
    ("{}\r\n\x00", "line 2, column 1", "expected the end of the file: got '\\x00'"),
    ("{ /* x }", "line 1, column 3", "expected a key in \" \": got '/'"),
]


@pytest.mark.parametrize(("text", "where", "problem"), BROKEN)
def test_broken_file_is_refused_with_its_place(text: str, where: str, problem: str) -> None:
    """An error names the file, the line and the column, what was expected and what came."""
    with pytest.raises(InvalidSettings) as caught:
        scan(text, RELAXED, "/home/u/settings.json")
    assert (caught.value.place, caught.value.field) == ("/home/u/settings.json", where)
    assert caught.value.problem == problem


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ('{\n  // why\n  "a": 1}', "line 2, column 3", "no comment, which this client"),
        ('{"a": 1 /* why */}', "line 1, column 9", "no comment, which this client"),
        ('{"a": [1,]}', "line 1, column 10", "this client reads no comma before ]"),
        ('\ufeff{"a": 1}', "line 1, column 1", "no byte order mark"),
    ],
)
def test_what_only_some_clients_read(text: str, where: str, problem: str) -> None:
    """Comments, a last comma and a mark are read for those clients that read them."""
    assert scan(text, RELAXED, "f").text == text
    with pytest.raises(InvalidSettings, match=problem) as caught:
        scan(text, PLAIN, "f")
    assert caught.value.field == where


def test_column_does_not_count_the_mark() -> None:
    """A byte order mark is no column that an editor shows."""
    with pytest.raises(InvalidSettings) as caught:
        scan('\ufeff{"a": x}', Dialect(mark=True), "f")
    assert caught.value.field == "line 1, column 7"


def test_depth_has_an_end() -> None:
    """A file that is nested to exhaust us is refused, as deep as any client writes is read."""
    deep = DEEPEST - 1
    scan('{"a":' + "[" * deep + "]" * deep + "}", PLAIN, "f")
    with pytest.raises(InvalidSettings, match="inside each other"):
        scan('{"a":' + "[" * 100_000, PLAIN, "f")


@given(text=st.text())
def test_garbage_is_refused_or_read(text: str) -> None:
    """Whatever a file holds, nothing but InvalidSettings is raised."""
    try:
        document = scan(text, RELAXED, "f")
    except InvalidSettings:
        return
    assert document.root.kind == "object"
