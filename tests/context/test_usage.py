"""Usage: disjoint buckets, and every figure derived from them."""

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.usage import (
    ZERO,
    Usage,
    context_line,
    format_occupancy,
    format_percent,
    format_tokens,
    from_subset,
    percent,
    percent_raw,
    ratio_of,
)
from brimline.errors import InvalidUsage
from hooks.short_status import MAX_TOKENS, shorten

COUNTS = st.integers(0, 2_000_000)
# The dashboard's tests read it too: every surface gives a figure the same form.
FORMATS = json.loads((Path(__file__).parents[1] / "figure_formats.json").read_bytes())


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Any valid usage."""
    output = draw(COUNTS)
    reasoning = draw(st.none() | st.integers(0, output))
    cache_write = draw(COUNTS)
    kept_1h = draw(st.integers(0, cache_write))
    return Usage(draw(COUNTS), draw(COUNTS), cache_write, output, reasoning, kept_1h)


BAD: list[Any] = [-1, 1 << 63, "7", 7.0, math.nan, None, True, False, [1], b"1"]


@pytest.mark.parametrize("value", BAD, ids=repr)
@pytest.mark.parametrize("field", ["input", "cache_read", "cache_write", "output"])
def test_invalid_count_is_refused_by_name(field: str, value: Any) -> None:
    counts: dict[str, Any] = {"input": 1, "cache_read": 2, "cache_write": 3, "output": 4}
    with pytest.raises(InvalidUsage) as caught:
        Usage(**{**counts, field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("value", [-1, "7", 7.0, math.nan, True], ids=repr)
def test_invalid_reasoning_count_is_refused(value: Any) -> None:
    with pytest.raises(InvalidUsage) as caught:
        Usage(1, 2, 3, 9, value)
    assert caught.value.field == "reasoning"


def test_more_reasoning_than_output_is_refused() -> None:
    assert Usage(0, 0, 0, 5, 5).reasoning == 5
    with pytest.raises(InvalidUsage, match="at most the output, 5"):
        Usage(0, 0, 0, 5, 6)


@pytest.mark.parametrize("value", [*BAD, 4], ids=repr)
def test_one_hour_writes_are_a_part_of_the_writes(value: Any) -> None:
    assert Usage(0, 0, 3, 5, cache_write_1h=3).sent == 3
    with pytest.raises(InvalidUsage) as caught:
        Usage(1, 2, 3, 9, cache_write_1h=value)
    assert caught.value.field == "cache_write_1h"


def test_usage_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Usage(1, 2, 3, 4).input = 5  # pyright: ignore[reportAttributeAccessIssue]


def test_sent_is_the_prompt_and_held_adds_the_reply() -> None:
    usage = Usage(input=3, cache_read=80_000, cache_write=2_000, output=500, reasoning=400)
    assert usage.sent == 82_003
    assert usage.held == 82_503


@pytest.mark.parametrize(
    ("uncached", "cached", "effective"),
    [(20_000, 80_000, 28_000), (50_000, 0, 50_000), (15_000, 80_000, 23_000), (0, 1, 1), (0, 0, 0)],
)
def test_cached_token_costs_a_tenth(uncached: int, cached: int, effective: int) -> None:
    assert Usage(uncached, cached, 0, 0).effective == effective


def test_95k_of_100k_triggers_a_compaction_only_without_a_cache() -> None:
    threshold = 90_000
    assert Usage(95_000, 0, 0, 0).effective > threshold
    cached = Usage(15_000, 80_000, 0, 0)
    assert cached.sent == 95_000
    assert cached.effective < threshold


@given(usages())
def test_cost_is_between_a_tenth_of_the_prompt_and_the_prompt(usage: Usage) -> None:
    assert usage.sent <= 10 * usage.effective
    assert usage.effective <= usage.sent <= usage.held


@given(usages(), usages(), usages())
def test_addition_is_associative_and_commutative(a: Usage, b: Usage, c: Usage) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert (a + b).held == a.held + b.held


@given(usages())
def test_adding_nothing_changes_nothing(usage: Usage) -> None:
    assert usage + ZERO == ZERO + usage == usage


def test_sum_with_unknown_reasoning_has_unknown_reasoning() -> None:
    assert (Usage(1, 1, 1, 1, 1) + Usage(1, 1, 1, 1)).reasoning is None
    assert (Usage(1, 1, 1, 1) - ZERO).reasoning is None
    assert (Usage(1, 1, 1, 1, 1) - Usage(0, 0, 0, 0)).reasoning is None
    assert (Usage(1, 1, 1, 1, 1) + Usage(1, 1, 1, 2, 2)).reasoning == 3


@given(usages(), usages())
def test_difference_undoes_addition(a: Usage, b: Usage) -> None:
    grown = (a + b) - a
    assert (grown.sent, grown.output) == (b.sent, b.output)
    if a.reasoning is not None:
        assert grown == b


def test_decreased_total_is_an_error() -> None:
    with pytest.raises(InvalidUsage):
        _ = Usage(1, 0, 0, 0) - Usage(2, 0, 0, 0)


@given(usages())
def test_encoded_usage_decodes_to_the_same(usage: Usage) -> None:
    assert msgspec.json.decode(msgspec.json.encode(usage), type=Usage) == usage


def test_wrong_stored_count_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"input":1,"cache_read":0,"cache_write":0}', type=Usage)
    with pytest.raises((msgspec.ValidationError, InvalidUsage)):
        msgspec.json.decode(b'{"input":-1,"cache_read":0,"cache_write":0,"output":0}', type=Usage)


def test_cached_tokens_are_taken_out_of_a_prompt_that_includes_them() -> None:
    usage = from_subset(prompt=100, cached=70, cache_write=10, output=5, reasoning=2)
    assert usage == Usage(20, 70, 10, 5, 2)
    assert usage.sent == 100


def test_more_cached_than_sent_is_an_error_that_names_both() -> None:
    with pytest.raises(InvalidUsage, match="at most the prompt, 100: got 101") as caught:
        from_subset(100, 60, 41, 5)
    assert caught.value.field == "cached"


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_sent_is_the_prompt_as_the_provider_counted_it(
    cached: int, write: int, rest: int, output: int
) -> None:
    prompt = cached + write + rest
    assert from_subset(prompt, cached, write, output).sent == prompt


def test_raw_percentage_shows_the_overshoot_and_the_bounded_one_does_not() -> None:
    assert percent(35_071, 200_000) == percent_raw(35_071, 200_000) == 17.5
    assert percent_raw(250_000, 200_000) == 125.0
    assert percent(250_000, 200_000) == 100.0
    assert percent(0, 200_000) == 0.0


@pytest.mark.parametrize(("part", "whole"), [(None, 5), (5, None), (None, None)])
def test_percentage_of_unknown_is_unknown(part: int | None, whole: int | None) -> None:
    assert percent(part, whole) is None
    assert percent_raw(part, whole) is None


@given(COUNTS, st.integers(1, 2_000_000))
def test_shown_percentage_is_between_0_and_100(part: int, whole: int) -> None:
    bounded = percent(part, whole)
    assert bounded is not None
    assert 0 <= bounded <= 100


@pytest.mark.parametrize("part", [0, 5])
def test_percentage_of_0_is_unknown(part: int) -> None:
    assert percent_raw(part, 0) is None
    assert percent(part, 0) is None


@pytest.mark.parametrize(
    ("sent", "window", "line"),
    [
        (90_000, 200_000, "Context: 45% (90K/200K)"),
        (250_000, 200_000, "Context: 100% (250K/200K)"),
        (90_000, None, "Tokens: 90K"),
        (90_000, 0, "Tokens: 90K"),
        (0, 1, "Context: 0% (0/1)"),
        (None, 200_000, ""),
        (None, None, ""),
    ],
)
def test_context_line_has_percentage_tokens_or_nothing(
    sent: int | None, window: int | None, line: str
) -> None:
    assert context_line(sent, window) == line


@pytest.mark.parametrize(
    ("sent", "window", "percent"),
    [
        (22_366, 200_000, 11),
        (127_602, 200_000, 64),
        (174_956, 200_000, 87),
        (175_070, 200_000, 88),
        (502_712, 1_000_000, 50),
        (25_000, 200_000, 13),
        (125_000, 1_000_000, 13),
    ],
)
def test_context_line_rounds_as_claude_code_does(sent: int, window: int, percent: int) -> None:
    assert context_line(sent, window).startswith(f"Context: {percent}% ")


@pytest.mark.parametrize(("tokens", "text"), FORMATS["tokens"])
def test_tokens_have_the_form_of_every_surface(tokens: int, text: str) -> None:
    assert format_tokens(tokens) == text
    if tokens < MAX_TOKENS:  # as the compiled hook client writes it
        assert shorten(tokens) == text


@pytest.mark.parametrize(("value", "text"), FORMATS["percent"])
def test_percentages_have_the_form_of_every_surface(value: float, text: str) -> None:
    assert format_percent(value) == text


@pytest.mark.parametrize(("raw", "text"), FORMATS["occupancy"])
def test_occupancy_is_marked_above_the_window(raw: float, text: str) -> None:
    assert format_occupancy(raw) == text


@pytest.mark.parametrize(("part", "whole", "tenths"), [(1, 400, 0.3), (1, 2_001, 0)])
def test_half_a_tenth_of_a_percent_rounds_up(part: int, whole: int, tenths: float) -> None:
    assert percent_raw(part, whole) == tenths


def test_ratio_of_a_percentage_has_no_noise_of_a_division() -> None:
    assert [ratio_of(value) for value in (None, 0.0, 7.4, 100.0, 130.5)] == [
        None, 0.0, 0.074, 1.0, 1.305,
    ]  # fmt: skip
