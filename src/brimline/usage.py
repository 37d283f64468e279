"""Usage, and every figure that is made from it."""

from math import ceil
from typing import Annotated, TypeAlias

import msgspec

from brimline.errors import InvalidUsage

CACHE_DISCOUNT = (9, 10)
"""A cached token costs a tenth: the part of it that `effective` leaves out."""


MAX_TOKENS = 1 << 60
"""No count is larger; a few of them together are still a number to every store."""

Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKENS)]

BYTES_PER_TOKEN = 3.5
"""What a token of prose or code takes at least, by and large; a tokenizer tells it exactly."""


class Usage(msgspec.Struct, frozen=True, gc=False):
    """The tokens of one call, in disjoint buckets; `reasoning` is a part of `output`.

    `reasoning` is None where the provider does not tell it.
    """

    input: int
    cache_read: int
    cache_write: int
    output: int
    reasoning: int | None = None

    def __post_init__(self) -> None:
        if (
            type(self.input) is type(self.cache_read) is type(self.cache_write) is int
            and type(self.output) is int
            and 0 <= self.input <= MAX_TOKENS
            and 0 <= self.cache_read <= MAX_TOKENS
            and 0 <= self.cache_write <= MAX_TOKENS
            and 0 <= self.output <= MAX_TOKENS
            and self.reasoning is None
        ):
            return  # as nearly all are: the others are looked at more closely
        self._check()

    def _check(self) -> None:
        told = {field: getattr(self, field) for field in self.__struct_fields__}
        for field, value in told.items():
            sound = type(value) is int and 0 <= value <= MAX_TOKENS
            if not sound and (field != "reasoning" or value is not None):
                raise InvalidUsage(field, value)
        if self.reasoning is not None and self.reasoning > self.output:
            raise InvalidUsage("reasoning", self.reasoning, f"at most the output, {self.output}")

    @property
    def sent(self) -> int:
        """What the provider counted as the prompt."""
        return self.input + self.cache_read + self.cache_write

    @property
    def held(self) -> int:
        """What the next call starts with."""
        return self.input + self.cache_read + self.cache_write + self.output

    @property
    def effective(self) -> int:
        """The cost view of the prompt: a cached token counts a tenth. Never an occupancy."""
        part, whole = CACHE_DISCOUNT
        return self.sent - self.cache_read * part // whole

    def __add__(self, other: "Usage") -> "Usage":
        reasoning = (
            None
            if self.reasoning is None or other.reasoning is None
            else self.reasoning + other.reasoning
        )
        return Usage(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            reasoning,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        """The tokens by which a running total grew; raises InvalidUsage where it fell."""
        reasoning = (
            None
            if self.reasoning is None or other.reasoning is None
            else self.reasoning - other.reasoning
        )
        return Usage(
            self.input - other.input,
            self.cache_read - other.cache_read,
            self.cache_write - other.cache_write,
            self.output - other.output,
            reasoning,
        )


ZERO = Usage(0, 0, 0, 0, 0)
"""The neutral element of addition."""


def from_subset(
    prompt: int, cached: int, cache_write: int, output: int, reasoning: int | None = None
) -> Usage:
    """Usage of a provider whose prompt count includes what the cache was read or written for."""
    if cached + cache_write > prompt:
        raise InvalidUsage("cached", cached + cache_write, f"at most the prompt, {prompt}")
    return Usage(prompt - cached - cache_write, cached, cache_write, output, reasoning)


def estimate(text: str) -> int:
    """About how many tokens a text is: rather too many, so that a trigger is early, not late."""
    return ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)


def percent_raw(part: int | None, whole: int | None) -> float | None:
    """Part of whole in per cent, one decimal, unbounded; None where either is unknown."""
    if part is None or whole is None or whole <= 0:
        return None
    return round(100 * part / whole, 1)


def percent(part: int | None, whole: int | None) -> float | None:
    """The same, bounded to 0-100."""
    raw = percent_raw(part, whole)
    return None if raw is None else min(100.0, raw)


def format_tokens(tokens: int) -> str:
    """A token count for people: 812, 3.4K, 90K, 1M, 1.05M."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 9_950:
        return f"{tokens / 1_000:.1f}".removesuffix(".0") + "K"
    if tokens < 999_500:
        return f"{tokens / 1_000:.0f}K"
    return f"{tokens / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"


def context_line(sent: int | None, window: int | None) -> str:
    """The summary of a context: with its window, the tokens alone, or nothing if unknown."""
    if sent is None:
        return ""
    if window is None or window <= 0:
        return f"Tokens: {format_tokens(sent)}"
    return (
        f"Context: {whole_percent(sent, window)}% ({format_tokens(sent)}/{format_tokens(window)})"
    )


def whole_percent(part: int, whole: int) -> int:
    """Part of whole in whole per cent, bounded; halves go up, as in the clients' own displays."""
    return min(100, (200 * part + whole) // (2 * whole))
