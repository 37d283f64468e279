"""Queries of `recall`: what is found exactly, and that no text is an error of syntax."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.errors import InvalidRequest
from brimline.sessions.recall.query import parse_query, parse_text


def finds(query: str, text: str) -> bool:
    return parse_text(query).find_lines(text) is not None


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("compact", "after the Compaction"),
        ("PORT 5432", "it listens on 5432, the port"),
        ('"listens on 5432"', "it listens\n   on 5432, the port"),
        ("src/app/main.py", "see `src/app/main.py:12`"),
        ("src/app", "see src/app/main.py"),
        ("main.py", "see src/app/main.py"),
        ("read_changed", "def read_changed_files(): ..."),
        ("1,234.5", "sums to 1,234.5 tokens"),
        ("--as-json", "pass --as-json."),
        ("->", "a -> b"),
        ("连接", "数据库连接失败"),
        ("café", "the CAFÉ"),
    ],
)
def test_what_was_typed_is_not_found(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("action", "the compaction"),  # only the beginning of a word
        ('"compact"', "the compaction"),
        ("93", "931 of 1,000"),
        ("1.2", "version 11.2"),
        ("1.2", "version 1.2.3"),
        ("234", "1,234 tokens"),
        ("src/app", "src app"),
        ('"a b"', "b a"),
        ("port 5432", "the port"),
        ("cafe", "the café"),
    ],
)
def test_something_else_than_what_was_typed_is_found(query: str, text: str) -> None:
    assert not finds(query, text)


def test_argument_with_spaces_is_no_phrase() -> None:
    """A shell takes the quotes away: what was quoted there is one argument."""
    query = parse_query(["connection refused", "5432"])
    assert [term.text for term in query.terms] == ["connection refused", "5432"]
    assert [term.text for term in query.split_phrases().terms] == ["connection", "refused", "5432"]


@pytest.mark.parametrize("words", [[""], ["  "], ['""'], ["x " * 600], list("abcdefghijklmnopq")])
def test_impossible_query_is_no_clear_error(words: list[str]) -> None:
    with pytest.raises(InvalidRequest):
        parse_query(words)


@given(st.text(max_size=60))
def test_text_is_an_error_of_syntax(text: str) -> None:
    """Any text is a query, or is refused because there is nothing in it."""
    try:
        query = parse_text(text)
    except InvalidRequest:
        return
    assert query.find_lines(text.replace('"', "")) is not None or '"' in text
