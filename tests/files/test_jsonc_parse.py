"""The parser rejects what the reader of a file would reject, with line and column."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.errors import InvalidSettings
from brimline.files.jsonc import MAX_DEPTH, Dialect, parse

from .jsonc_texts import PLAIN, RELAXED

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
def test_error_names_line_and_column(text: str, where: str, problem: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        parse(text, RELAXED, "/home/u/settings.json")
    assert (caught.value.place, caught.value.field) == ("/home/u/settings.json", where)
    assert caught.value.problem == problem


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ('{\n  // why\n  "a": 1}', "line 2, column 3", "no comment in this file"),
        ('{"a": 1 /* why */}', "line 1, column 9", "no comment in this file"),
        ('{"a": [1,]}', "line 1, column 10", "no comma is allowed before ]"),
        ('\ufeff{"a": 1}', "line 1, column 1", "no byte order mark"),
    ],
)
def test_dialect_decides_what_is_accepted(text: str, where: str, problem: str) -> None:
    assert parse(text, RELAXED, "f").text == text
    with pytest.raises(InvalidSettings, match=problem) as caught:
        parse(text, PLAIN, "f")
    assert caught.value.field == where


def test_column_does_not_count_the_byte_order_mark() -> None:
    with pytest.raises(InvalidSettings) as caught:
        parse('\ufeff{"a": x}', Dialect(byte_order_mark=True), "f")
    assert caught.value.field == "line 1, column 7"


def test_too_deep_file_is_rejected_without_exhausting_the_stack() -> None:
    deep = MAX_DEPTH - 1
    parse('{"a":' + "[" * deep + "]" * deep + "}", PLAIN, "f")
    with pytest.raises(InvalidSettings, match="inside each other"):
        parse('{"a":' + "[" * 100_000, PLAIN, "f")


@given(text=st.text())
def test_garbage_raises_only_invalid_settings(text: str) -> None:
    try:
        document = parse(text, RELAXED, "f")
    except InvalidSettings:
        return
    assert document.root.kind == "object"
