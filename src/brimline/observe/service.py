"""The context service of an earlier design: its names and its JSON, on our figures."""

from collections.abc import Mapping
from typing import cast

import msgspec

from brimline.errors import InvalidUsage
from brimline.providers.anthropic import usage_of
from brimline.providers.rows import Row, Shape, walk
from brimline.usage import Usage, format_tokens, percent, percent_raw
from brimline.windows import Overrides, ResolveContext, window_of
from brimline.windows.tables import LONG_CONTEXT_SUFFIX

MODEL_CONTEXT_WINDOWS: dict[str, int] = {
    "claude-sonnet-4-20250514": 200_000,
    "claude-opus-4-20250514": 200_000,
    "claude-3-5-sonnet-20241022": 200_000,
    "claude-3-5-haiku-20241022": 200_000,
    "claude-3-opus-20240229": 200_000,
    "claude-3-sonnet-20240229": 200_000,
    "claude-3-haiku-20240307": 200_000,
    "claude-sonnet": 200_000,
    "claude-opus": 200_000,
    "claude-haiku": 200_000,
    "sonnet": 200_000,
    "opus": 200_000,
    "haiku": 200_000,
}
"""The windows that the design names, its aliases among them; all others are the catalogue's."""

DEFAULT_CONTEXT_WINDOW = 200_000
"""What the design takes for a model that nobody knows."""

NEAR = 80.0
"""From how many per cent on a context is near its limit."""

COUNTS = Shape(
    "context-service",
    "disjoint",
    (
        Row("input", ("input_tokens",), required=True),
        Row("cache_read", ("cache_read_tokens",), required=True),
        Row("cache_write", ("cache_creation_tokens",), required=True),
        Row("output", ("output_tokens",), required=True),
    ),
)

RUN_STATS = Shape(
    "run-stats",
    "disjoint",
    (
        Row("input", ("tokens.input",), required=True),
        Row("cache_read", ("tokens.cache_read",), required=True),
        Row("cache_write", ("tokens.cache_creation",), required=True),
        Row("output", ("tokens.output",), required=True),
    ),
)


class TokenUsage(msgspec.Struct, frozen=True):
    """The tokens of one call by the design's names; InvalidUsage names a count that cannot be."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0

    def __post_init__(self) -> None:
        COUNTS.usage(self)

    @property
    def usage(self) -> Usage:
        """The same as a usage."""
        return COUNTS.usage(self)

    @property
    def total_input(self) -> int:
        """The whole prompt, the cache with it: what was sent."""
        return self.usage.sent

    @property
    def total(self) -> int:
        """The prompt and the reply: what is held."""
        return self.usage.held


class ContextStats(msgspec.Struct, frozen=True):
    """How full the window is: bounded, and as it is; near from 80 % on, over above the window."""

    percentage: float
    percentage_raw: float
    total_input_tokens: int
    context_window_size: int
    is_near_limit: bool
    is_over_limit: bool

    def to_dict(self) -> dict[str, object]:
        """The part of it that is written as JSON."""
        return {
            "percentage": self.percentage,
            "total_input_tokens": self.total_input_tokens,
            "context_window_size": self.context_window_size,
            "is_near_limit": self.is_near_limit,
        }


class ContextService:
    """How full a model's window is, by the usage of the last call.

        service = ContextService(model="claude-sonnet")
        service.update(input_tokens=5_000, output_tokens=1_000)
        service.format_summary()

    Each update replaces the one before, so give it the usage of the last call: an answer's own. The
    usage of a result message is the sum of all calls, and says 700 % after ten of them. As in the
    design, a model that nobody knows has a window of 200,000, and what was never told is 0 %, not
    unknown; `Tracker` makes that difference.
    """

    def __init__(self, model: str = "claude-sonnet", window: int | None = None) -> None:
        self._model = model
        self._window = _size_of(model) if window is None else _checked("window", window)
        self._usage = TokenUsage()

    @property
    def model(self) -> str:
        """The model, as it was named."""
        return self._model

    @property
    def context_window_size(self) -> int:
        """The window in tokens."""
        return self._window

    def update(
        self,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cache_creation_tokens: int = 0,
        cache_read_tokens: int = 0,
    ) -> None:
        """Take the usage of the last call; InvalidUsage changes nothing."""
        self._usage = TokenUsage(
            input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens
        )

    def update_from_dict(self, usage: Mapping[str, object]) -> None:
        """The same from the `usage` of an Anthropic answer; InvalidUsage changes nothing."""
        self._usage = _named(usage_of(usage))

    def get_percentage(self) -> float:
        """What was sent, in per cent of the window, bounded to 0-100."""
        return cast("float", percent(self._usage.total_input, self._window))

    def get_percentage_raw(self) -> float:
        """The same, unbounded."""
        return cast("float", percent_raw(self._usage.total_input, self._window))

    def get_stats(self) -> ContextStats:
        """Every figure."""
        sent = self._usage.total_input
        raw = self.get_percentage_raw()
        return ContextStats(
            percentage=self.get_percentage(),
            percentage_raw=raw,
            total_input_tokens=sent,
            context_window_size=self._window,
            is_near_limit=raw >= NEAR,
            is_over_limit=sent > self._window,
        )

    def format_summary(self) -> str:
        """The figure as a line for people, with a warning where more was sent than fits."""
        stats = self.get_stats()
        over = " (WARNING: tokens exceed window)" if stats.is_over_limit else ""
        return f"Context: {stats.percentage:.1f}% of {format_tokens(self._window)}{over}"

    def reset(self) -> None:
        """Begin a new session: nothing was sent."""
        self._usage = TokenUsage()

    def run_stats(self) -> dict[str, object]:
        """The part of a run's `stats` that is about its context; no tokens where none were told."""
        size: dict[str, object] = {"context_window_size": self._window}
        told = self._usage
        if told == TokenUsage():
            return size
        tokens = {
            "input": told.input_tokens,
            "output": told.output_tokens,
            "cache_creation": told.cache_creation_tokens,
            "cache_read": told.cache_read_tokens,
        }
        return {"tokens": tokens, "context_percentage": self.get_percentage(), **size}

    @classmethod
    def from_run_stats(
        cls, stats: Mapping[str, object], model: str = "claude-sonnet"
    ) -> "ContextService":
        """The service that wrote these `stats`; the percentage is made anew, and not believed.

        A run whose provider told no tokens has none; without a size it has the model's.
        """
        size = walk(stats, "context_window_size")
        service = cls(model, None if size is None else _checked("context_window_size", size))
        if walk(stats, "tokens") is not None:
            service._usage = _named(RUN_STATS.usage(stats))
        return service


def _size_of(model: str) -> int:
    """The design's own table, then the catalogue, then the default; a marked id is the client's."""
    marked = (
        window_of(ResolveContext(agent="claude", model=model))
        if model.endswith(LONG_CONTEXT_SUFFIX)
        else None
    )
    found = marked or window_of(ResolveContext(model=model), Overrides(MODEL_CONTEXT_WINDOWS))
    return found.tokens if found else DEFAULT_CONTEXT_WINDOW


def _checked(field: str, size: object) -> int:
    if type(size) is not int or size <= 0:
        raise InvalidUsage(field, size, "an integer above 0")
    return size


def _named(usage: Usage | None) -> TokenUsage:
    """A usage by the design's names; that of a message that was no call has no tokens."""
    if usage is None:
        return TokenUsage()
    return TokenUsage(usage.input, usage.output, usage.cache_write, usage.cache_read)
