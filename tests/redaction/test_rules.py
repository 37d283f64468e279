"""The rules for formats of credentials are well-formed, and take linear time by construction."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimline
from brimline.redaction.formats import OWN_RULES
from brimline.redaction.rules import (
    LONG_WORD_CHARS,
    SECRET_WORD_CHARS,
    WINDOW_CHARS,
    SearchedText,
    SecretRule,
    load_imported_rules,
    merge_spans,
)
from hypothesis_examples import examples

RULES = (*OWN_RULES, *load_imported_rules())
UNBOUNDED = 2**32 - 1


def compiled(rule: SecretRule) -> re.Pattern[str]:
    return re.compile(rule.regex, re.IGNORECASE if rule.ignore_case else 0)


def repeats(parsed: Any) -> Iterator[int]:
    """The maximum of each repetition in a pattern."""
    items: Any = getattr(parsed, "data", parsed)
    if not isinstance(items, tuple | list):
        return
    every = cast("list[Any]", items)
    if len(every) == 2 and str(every[0]).endswith("_REPEAT"):
        yield int(every[1][1])
    for item in every:
        yield from repeats(item)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rule_compiles_with_its_group_and_a_keyword(rule: SecretRule) -> None:
    assert rule.group <= compiled(rule).groups
    assert rule.keywords
    assert all(rule.keywords)
    if rule.ignore_case:
        assert all(keyword == keyword.lower() for keyword in rule.keywords)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_no_rule_repeats_without_bound(rule: SecretRule) -> None:
    """Each attempt to match reads a bounded part of the text."""
    parser = cast("Any", re)._parser
    maxima = list(repeats(parser.parse(rule.regex)))
    assert all(most <= 4 * WINDOW_CHARS for most in maxima)


@pytest.mark.parametrize("text", ["a+", "(?:b*)c", "x{3,}"])
def test_check_sees_a_nested_unbounded_repetition(text: str) -> None:
    assert max(repeats(cast("Any", re)._parser.parse(text))) >= UNBOUNDED


def test_rule_ids_are_unique() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)


@examples(400)
@given(st.data())
def test_every_match_contains_a_keyword_of_its_rule(data: st.DataObject) -> None:
    rule = data.draw(st.sampled_from(load_imported_rules()))
    text = data.draw(st.from_regex(compiled(rule), fullmatch=True))
    words = re.findall(r"[\w.=-]+", text, re.ASCII)
    long_enough = any(len(word) >= SECRET_WORD_CHARS for word in words)
    if text.isascii() and long_enough and (not rule.long_word or re.search(r"\d", text)):
        assert list(rule.find_spans(SearchedText(text)))


def test_data_names_its_origin_and_licence() -> None:
    data = Path(brimline.__file__).parent / "data"
    assert '"made_from": "detect-secrets 1.' in (data / "secret_rules.json").read_text("utf-8")
    licence = (data / "LICENSES" / "detect-secrets.txt").read_text("utf-8")
    assert "Apache License" in licence
    assert "Yelp" in licence


@given(st.text("ab\n", max_size=60), st.integers(0, 3))
def test_every_keyword_is_in_a_line_that_is_tried(text: str, spaces: int) -> None:
    whole = f"{text}{' ' * spaces}ab{text}"
    lines = list(SearchedText(whole).lines_with("ab", ignore_case=False))
    wanted = {match.start() for match in re.finditer("ab", whole)}
    assert all(any(start <= place < end for start, end in lines) for place in wanted)
    assert lines == sorted(set(lines))


@pytest.mark.parametrize("distance", [0, WINDOW_CHARS - 5, WINDOW_CHARS, 2 * WINDOW_CHARS, 9_999])
def test_secret_anywhere_in_a_long_line_is_found(distance: int) -> None:
    secret = "gh" + "p_" + "a1B2c3D4" * 5
    text = "ghp_ " + "x" * distance + " " + secret + " y" * 3_000
    rule = next(rule for rule in RULES if rule.id == "github")
    place = text.index(secret)
    assert (place, place + len(secret)) in list(rule.find_spans(SearchedText(text)))


def test_long_word_may_be_a_secret() -> None:
    assert LONG_WORD_CHARS >= SECRET_WORD_CHARS


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9))))
def test_merged_places_cover_the_same_characters_in_order(pairs: list[tuple[int, int]]) -> None:
    spans = [(start, start + size) for start, size in pairs]
    whole = merge_spans(spans)
    assert {n for a, b in spans for n in range(a, b)} == {n for a, b in whole for n in range(a, b)}
    assert all(end < start for (_, end), (start, _) in pairwise(whole))
