"""Texts are cut by the unit of their reader, and never inside a character."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.handoff.truncate import UTF8, UTF16, TextMeasure


@pytest.mark.parametrize(("measure", "size"), [(UTF8, 4 + 2 + 1), (UTF16, 2 + 1 + 1)])
def test_size_is_in_units(measure: TextMeasure, size: int) -> None:
    assert measure.size("😀éa") == size


def test_no_character_is_split() -> None:
    assert UTF8.first("aé", 2) == "a"
    assert UTF8.last("éa", 2) == "a"
    assert UTF16.first("a😀", 2) == "a"
    assert UTF16.last("😀a", 2) == "a"


def test_long_text_keeps_its_beginning_and_end() -> None:
    assert UTF8.elide("0123456789", 9, "...") == "012...789"
    assert UTF8.elide("0123456789", 10, "...") == "0123456789"


@given(st.text(), st.integers(-5, 40), st.text(max_size=10))
def test_elided_parts_are_never_longer_than_requested(text: str, most: int, gap: str) -> None:
    for measure in (UTF8, UTF16):
        assert text.startswith(measure.first(text, most))
        assert text.endswith(measure.last(text, most))
        assert measure.size(measure.first(text, most)) <= max(0, most)
        assert measure.size(measure.last(text, most)) <= max(0, most)
        assert measure.size(measure.elide(text, most, gap)) <= max(0, most)
