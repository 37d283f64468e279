"""Usage, and the figures derived from it."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import msgspec

from brimline.errors import InvalidUsage

CACHE_DISCOUNT = (9, 10)  # a cached token costs a tenth; `effective` leaves out the rest
MAX_TOKENS = 1 << 60  # the sum of a few counts still fits into the integers of every store

Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKENS)]

IMAGE_TOKENS = 1_600  # what an image of full size takes, more or less, whatever its file size


class Usage(msgspec.Struct, frozen=True, gc=False):
    """The tokens of one call, in disjoint buckets; `reasoning` is a part of `output`.

    `reasoning` is None if the provider does not report it. `cache_write_1h` is the part of
    `cache_write` that is kept for an hour, which costs more than the usual five minutes.
    """

    input: int
    cache_read: int
    cache_write: int
    output: int
    reasoning: int | None = None
    cache_write_1h: int = 0

    def __post_init__(self) -> None:
        if (
            type(self.input) is type(self.cache_read) is type(self.cache_write) is int
            and type(self.output) is int
            and 0 <= self.input <= MAX_TOKENS
            and 0 <= self.cache_read <= MAX_TOKENS
            and 0 <= self.cache_write <= MAX_TOKENS
            and 0 <= self.output <= MAX_TOKENS
            and self.reasoning is None
            and type(self.cache_write_1h) is int
            and 0 <= self.cache_write_1h <= self.cache_write
        ):
            return  # nearly all; the others are checked field by field
        self._check()

    def _check(self) -> None:
        for field in self.__struct_fields__:
            value = getattr(self, field)
            is_valid = type(value) is int and 0 <= value <= MAX_TOKENS
            if not is_valid and (field != "reasoning" or value is not None):
                raise InvalidUsage(field, value)
        if self.reasoning is not None and self.reasoning > self.output:
            raise InvalidUsage("reasoning", self.reasoning, f"at most the output, {self.output}")
        if self.cache_write_1h > self.cache_write:
            expected = f"at most the cache writes, {self.cache_write}"
            raise InvalidUsage("cache_write_1h", self.cache_write_1h, expected)

    @property
    def sent(self) -> int:
        """The prompt as the provider counted it."""
        return self.input + self.cache_read + self.cache_write

    @property
    def held(self) -> int:
        """What the next call starts with."""
        return self.input + self.cache_read + self.cache_write + self.output

    @property
    def effective(self) -> int:
        """The prompt by cost: a cached token counts a tenth. Never an occupancy."""
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
            self.cache_write_1h + other.cache_write_1h,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        """The growth of a running total. Raises InvalidUsage if it fell."""
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
            self.cache_write_1h - other.cache_write_1h,
        )


ZERO = Usage(0, 0, 0, 0, 0)  # the neutral element of addition


def add_usages(usages: Sequence[Usage]) -> Usage:
    """Return the sum of usages; faster than adding one after the other."""
    reasoning = [usage.reasoning for usage in usages if usage.reasoning is not None]
    return Usage(
        sum([usage.input for usage in usages]),
        sum([usage.cache_read for usage in usages]),
        sum([usage.cache_write for usage in usages]),
        sum([usage.output for usage in usages]),
        sum(reasoning) if len(reasoning) == len(usages) else None,
        sum([usage.cache_write_1h for usage in usages]),
    )


def from_subset(
    prompt: int,
    cached: int,
    cache_write: int,
    output: int,
    reasoning: int | None = None,
    cache_write_1h: int = 0,
) -> Usage:
    """Usage of a provider whose prompt count includes cache reads and writes."""
    if cached + cache_write > prompt:
        raise InvalidUsage("cached", cached + cache_write, f"at most the prompt, {prompt}")
    uncached = prompt - cached - cache_write
    return Usage(uncached, cached, cache_write, output, reasoning, cache_write_1h)


def percent_raw(part: int | None, whole: int | None) -> float | None:
    """Part of whole in percent, to one decimal, unbounded; None if either is unknown.

    Halves round up, as the clients do.
    """
    if part is None or whole is None or whole <= 0:
        return None
    return (2_000 * part + whole) // (2 * whole) / 10


def percent(part: int | None, whole: int | None) -> float | None:
    """`percent_raw`, bounded to 0-100."""
    raw = percent_raw(part, whole)
    return None if raw is None else min(100.0, raw)


def format_tokens(tokens: int) -> str:
    """Format a token count: 812, 3.4K, 90K, 1M, 1.05M, 1.01B; halves round up.

    The dashboard and the hook clients do the same; tests/figure_formats.json has the cases.
    """
    if tokens < 1_000:
        return str(tokens)
    if tokens < 9_950:
        return f"{(tokens + 50) // 100 / 10:g}K"
    if tokens < 999_500:
        return f"{(tokens + 500) // 1_000}K"
    unit, size = ("M", 1_000_000) if tokens < 999_995_000 else ("B", 1_000_000_000)
    return f"{(200 * tokens + size) // (2 * size) / 100:.2f}".rstrip("0").rstrip(".") + unit


def ratio_of(percent: float | None) -> float | None:
    """Return a percentage as a ratio: 7.4 becomes 0.074, not 0.07400000000000001."""
    return None if percent is None else round(percent / 100, 6)


def format_percent(percent: float) -> str:
    """Format a percentage with one decimal: 61.0%."""
    return f"{percent:.1f}%"


def format_occupancy(percent_raw: float) -> str:
    """Format the percentage of a window: 61.0%, or 130.0%! if more was sent than it holds."""
    return format_percent(percent_raw) + ("!" if percent_raw > 100 else "")


def context_line(sent: int | None, window: int | None) -> str:
    """Summarise a context: percent of its window, the tokens alone, or empty if unknown."""
    if sent is None:
        return ""
    if window is None or window <= 0:
        return f"Tokens: {format_tokens(sent)}"
    return (
        f"Context: {whole_percent(sent, window)}% ({format_tokens(sent)}/{format_tokens(window)})"
    )


def whole_percent(part: int, whole: int) -> int:
    """Part of whole in whole percent, at most 100; halves round up, as the clients do."""
    return min(100, (200 * part + whole) // (2 * whole))
