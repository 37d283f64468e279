"""Texts are cut by what their reader counts, and never through a character."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.handoff.truncate import UTF8, UTF16, TextMeasure


@pytest.mark.parametrize(("measure", "size"), [(UTF8, 4 + 2 + 1), (UTF16, 2 + 1 + 1)])
def test_size_is_in_units(measure: TextMeasure, size: int) -> None:
    """Bytes and UTF-16 units of the same text differ."""
    assert measure.size("😀éa") == size


def test_no_character_is_split() -> None:
    """What would be half a character is left out."""
    assert UTF8.first("aé", 2) == "a"
    assert UTF8.last("éa", 2) == "a"
    assert UTF16.first("a😀", 2) == "a"
    assert UTF16.last("😀a", 2) == "a"


def test_middle_is_elided() -> None:
    """A long text keeps its beginning and its end."""
    assert UTF8.elide("0123456789", 9, "...") == "012...789"
    assert UTF8.elide("0123456789", 10, "...") == "0123456789"


@given(st.text(), st.integers(-5, 40), st.text(max_size=10))
def test_elided_text_is_never_longer(text: str, most: int, gap: str) -> None:
    """No part is ever longer than asked for, and each is a part of the text."""
    for measure in (UTF8, UTF16):
        assert text.startswith(measure.first(text, most))
        assert text.endswith(measure.last(text, most))
        assert measure.size(measure.first(text, most)) <= max(0, most)
        assert measure.size(measure.last(text, most)) <= max(0, most)
        assert measure.size(measure.elide(text, most, gap)) <= max(0, most)
