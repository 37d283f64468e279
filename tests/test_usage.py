"""Usage: disjoint buckets, and every figure that is made from them."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.errors import InvalidUsage
from brimline.usage import (
    ZERO,
    Usage,
    context_line,
    format_tokens,
    from_subset,
    percent,
    percent_raw,
)

COUNTS = st.integers(0, 2_000_000)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Any usage that can be."""
    output = draw(COUNTS)
    reasoning = draw(st.none() | st.integers(0, output))
    return Usage(draw(COUNTS), draw(COUNTS), draw(COUNTS), output, reasoning)


BAD: list[Any] = [-1, 1 << 63, "7", 7.0, math.nan, None, True, False, [1], b"1"]


@pytest.mark.parametrize("value", BAD, ids=repr)
@pytest.mark.parametrize("field", ["input", "cache_read", "cache_write", "output"])
def test_count_that_cannot_be(field: str, value: Any) -> None:
    """A count that is negative or no integer is refused, and the field is named."""
    counts: dict[str, Any] = {"input": 1, "cache_read": 2, "cache_write": 3, "output": 4}
    with pytest.raises(InvalidUsage) as caught:
        Usage(**{**counts, field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("value", [-1, "7", 7.0, math.nan, True], ids=repr)
def test_reasoning_that_cannot_be(value: Any) -> None:
    """Reasoning is a count too, where it is told."""
    with pytest.raises(InvalidUsage) as caught:
        Usage(1, 2, 3, 9, value)
    assert caught.value.field == "reasoning"


def test_reasoning_is_a_part_of_output() -> None:
    """More reasoning than output is refused; all of it is allowed."""
    assert Usage(0, 0, 0, 5, 5).reasoning == 5
    with pytest.raises(InvalidUsage, match="at most the output, 5"):
        Usage(0, 0, 0, 5, 6)


def test_is_frozen() -> None:
    """A usage is a value: it cannot be changed."""
    with pytest.raises(AttributeError):
        Usage(1, 2, 3, 4).input = 5  # pyright: ignore[reportAttributeAccessIssue]


def test_sent_and_held() -> None:
    """Sent is the whole prompt, held is the prompt and the reply."""
    usage = Usage(input=3, cache_read=80_000, cache_write=2_000, output=500, reasoning=400)
    assert usage.sent == 82_003
    assert usage.held == 82_503


@pytest.mark.parametrize(
    ("uncached", "cached", "effective"),
    [(20_000, 80_000, 28_000), (50_000, 0, 50_000), (15_000, 80_000, 23_000), (0, 1, 1), (0, 0, 0)],
)
def test_effective(uncached: int, cached: int, effective: int) -> None:
    """A cached token costs a tenth: 100k with 80k cached is 28k."""
    assert Usage(uncached, cached, 0, 0).effective == effective


def test_compaction_trigger_on_effective() -> None:
    """At 95k of 100k and a threshold of 90 % it compacts without a cache, and not with 80k."""
    threshold = 90_000
    assert Usage(95_000, 0, 0, 0).effective > threshold
    cached = Usage(15_000, 80_000, 0, 0)
    assert cached.sent == 95_000
    assert cached.effective < threshold


@given(usages())
def test_effective_is_within_the_prompt(usage: Usage) -> None:
    """The cost view is never more than what was sent, and never less than a tenth of it."""
    assert usage.sent <= 10 * usage.effective
    assert usage.effective <= usage.sent <= usage.held


@given(usages(), usages(), usages())
def test_addition(a: Usage, b: Usage, c: Usage) -> None:
    """Addition is associative and commutative, and adds every bucket."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert (a + b).held == a.held + b.held


@given(usages())
def test_nothing_is_neutral(usage: Usage) -> None:
    """Nothing added changes nothing, an unknown reasoning stays unknown."""
    assert usage + ZERO == ZERO + usage == usage


def test_unknown_reasoning_is_not_zero() -> None:
    """A sum with one unknown part is unknown in that part."""
    assert (Usage(1, 1, 1, 1, 1) + Usage(1, 1, 1, 1)).reasoning is None
    assert (Usage(1, 1, 1, 1) - ZERO).reasoning is None
    assert (Usage(1, 1, 1, 1, 1) + Usage(1, 1, 1, 2, 2)).reasoning == 3


@given(usages(), usages())
def test_difference_undoes_addition(a: Usage, b: Usage) -> None:
    """The growth of a running total is what was added to it."""
    grown = (a + b) - a
    assert (grown.sent, grown.output) == (b.sent, b.output)
    if a.reasoning is not None:
        assert grown == b


def test_total_that_fell() -> None:
    """A running total that falls is an error, not a negative count."""
    with pytest.raises(InvalidUsage):
        _ = Usage(1, 0, 0, 0) - Usage(2, 0, 0, 0)


@given(usages())
def test_round_trip(usage: Usage) -> None:
    """A usage that was written is read as the same."""
    assert msgspec.json.decode(msgspec.json.encode(usage), type=Usage) == usage


def test_bad_usage_in_a_file() -> None:
    """A wrong count in what was stored is refused when it is read."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"input":1,"cache_read":0,"cache_write":0}', type=Usage)
    with pytest.raises((msgspec.ValidationError, InvalidUsage)):
        msgspec.json.decode(b'{"input":-1,"cache_read":0,"cache_write":0,"output":0}', type=Usage)


def test_subset() -> None:
    """Where the prompt has the cache in, the cache is taken out of it."""
    usage = from_subset(prompt=100, cached=70, cache_write=10, output=5, reasoning=2)
    assert usage == Usage(20, 70, 10, 5, 2)
    assert usage.sent == 100


def test_subset_larger_than_its_whole() -> None:
    """More cached than sent is an error that names both."""
    with pytest.raises(InvalidUsage, match="at most the prompt, 100: got 101") as caught:
        from_subset(100, 60, 41, 5)
    assert caught.value.field == "cached"


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_subset_keeps_the_prompt(cached: int, write: int, rest: int, output: int) -> None:
    """What was sent is the prompt as the provider counted it."""
    prompt = cached + write + rest
    assert from_subset(prompt, cached, write, output).sent == prompt


def test_percent() -> None:
    """One decimal; the raw one shows the overshoot, the bounded one does not."""
    assert percent(35_071, 200_000) == percent_raw(35_071, 200_000) == 17.5
    assert percent_raw(250_000, 200_000) == 125.0
    assert percent(250_000, 200_000) == 100.0
    assert percent(0, 200_000) == 0.0


@pytest.mark.parametrize(("part", "whole"), [(None, 5), (5, None), (None, None)])
def test_percent_of_the_unknown(part: int | None, whole: int | None) -> None:
    """Unknown in, unknown out: never 0."""
    assert percent(part, whole) is None
    assert percent_raw(part, whole) is None


@given(COUNTS, st.integers(1, 2_000_000))
def test_percent_is_bounded(part: int, whole: int) -> None:
    """The percentage that is shown lies within 0 and 100."""
    bounded = percent(part, whole)
    assert bounded is not None
    assert 0 <= bounded <= 100


@pytest.mark.parametrize("part", [0, 5])
def test_percent_of_an_empty_whole(part: int) -> None:
    """A part of nothing is unknown; it is no crash and no number."""
    assert percent_raw(part, 0) is None
    assert percent(part, 0) is None


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1K"),
        (3_449, "3.4K"),
        (9_949, "9.9K"),
        (9_950, "10K"),
        (90_000, "90K"),
        (200_000, "200K"),
        (258_400, "258K"),
        (999_499, "999K"),
        (999_500, "1M"),
        (1_000_000, "1M"),
        (1_048_576, "1.05M"),
        (12_000_000, "12M"),
    ],
)
def test_shorten(tokens: int, text: str) -> None:
    """A count for people keeps two or three figures and no idle zero."""
    assert format_tokens(tokens) == text


@pytest.mark.parametrize(
    ("sent", "window", "line"),
    [
        (90_000, 200_000, "Context: 45% (90K/200K)"),
        (250_000, 200_000, "Context: 100% (250K/200K)"),
        (90_000, None, "Tokens: 90K"),
        (None, 200_000, ""),
        (None, None, ""),
    ],
)
def test_context_line(sent: int | None, window: int | None, line: str) -> None:
    """The line has the percentage, only the tokens, or nothing: never a guess."""
    assert context_line(sent, window) == line


@pytest.mark.parametrize(
    ("sent", "window", "shown"),
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
def test_context_line_agrees_with_the_client(sent: int, window: int, shown: int) -> None:
    """Whole per cents are those of Claude Code's status line, which rounds a half up."""
    assert context_line(sent, window).startswith(f"Context: {shown}% ")
