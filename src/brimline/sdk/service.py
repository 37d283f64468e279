"""The ContextService of an earlier design: its names and JSON, with our figures."""

from collections.abc import Mapping
from typing import cast

import msgspec

from brimline.context.providers.anthropic import usage_of
from brimline.context.providers.rows import CountRow, UsageShape, get_path
from brimline.context.usage import Usage, format_tokens, percent, percent_raw
from brimline.context.window import Overrides, ResolveContext, window_of
from brimline.context.window.tables import LONG_CONTEXT_SUFFIX
from brimline.errors import InvalidUsage

# The windows and aliases of that design, and models that providers have withdrawn since; all other
# models are in the catalogue.
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
    "gemini-3-pro": 1_048_576,
    "gemini-3-pro-preview": 1_048_576,
}

DEFAULT_CONTEXT_WINDOW = 200_000  # for unknown models

NEAR_LIMIT_PERCENT = 80.0  # a context is near its limit from here on

TOKEN_USAGE = UsageShape(
    "disjoint",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("cache_read_tokens",), required=True),
        CountRow("cache_write", ("cache_creation_tokens",), required=True),
        CountRow("output", ("output_tokens",), required=True),
    ),
)

RUN_STATS = UsageShape(
    "disjoint",
    (
        CountRow("input", ("tokens.input",), required=True),
        CountRow("cache_read", ("tokens.cache_read",), required=True),
        CountRow("cache_write", ("tokens.cache_creation",), required=True),
        CountRow("output", ("tokens.output",), required=True),
    ),
)


class TokenUsage(msgspec.Struct, frozen=True):
    """The tokens of one call, under the names of that design. Raises InvalidUsage."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0

    def __post_init__(self) -> None:
        TOKEN_USAGE.usage(self)

    @property
    def usage(self) -> Usage:
        """The same as a `Usage`."""
        return TOKEN_USAGE.usage(self)

    @property
    def total_input(self) -> int:
        """The whole prompt with the cache: what was sent."""
        return self.usage.sent

    @property
    def total(self) -> int:
        """The prompt and the reply: what is held."""
        return self.usage.held


class ContextStats(msgspec.Struct, frozen=True):
    """How full the window is; near its limit from 80 percent on, over it above the window."""

    percentage: float
    percentage_raw: float
    total_input_tokens: int
    context_window_size: int
    is_near_limit: bool
    is_over_limit: bool

    def to_dict(self) -> dict[str, object]:
        """The fields that are written as JSON."""
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

    Each update replaces the one before: pass the usage of the last call, from its answer. The usage
    of a result message is the sum of all calls, and gives 700 percent after ten of them. As in that
    design, unknown models have a window of 200,000, and usage that was never given is 0 percent;
    `Tracker` reports it as unknown.
    """

    def __init__(self, model: str = "claude-sonnet", window: int | None = None) -> None:
        self._model = model
        self._window = _window_size(model) if window is None else _check_size("window", window)
        self._usage = TokenUsage()

    @property
    def model(self) -> str:
        """The model as given."""
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
        """Set the usage of the last call. After InvalidUsage nothing has changed."""
        self._usage = TokenUsage(
            input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens
        )

    def update_from_dict(self, usage: Mapping[str, object]) -> None:
        """Set it from the `usage` of an Anthropic answer; an empty one is 0.

        Raises InvalidUsage like `update`.
        """
        self._usage = _to_token_usage(usage_of(usage) if usage else None)

    def get_percentage(self) -> float:
        """What was sent in percent of the window, bounded to 0-100."""
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
            is_near_limit=raw >= NEAR_LIMIT_PERCENT,
            is_over_limit=sent > self._window,
        )

    def format_summary(self) -> str:
        """A summary line, with a warning if more was sent than fits."""
        stats = self.get_stats()
        over = " (WARNING: tokens exceed window)" if stats.is_over_limit else ""
        return f"Context: {stats.percentage:.1f}% of {format_tokens(self._window)}{over}"

    def reset(self) -> None:
        """Start a new session: nothing was sent."""
        self._usage = TokenUsage()

    def run_stats(self) -> dict[str, object]:
        """The context part of a run's `stats`; without tokens if none were given."""
        size: dict[str, object] = {"context_window_size": self._window}
        usage = self._usage
        if usage == TokenUsage():
            return size
        tokens = {
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "cache_creation": usage.cache_creation_tokens,
            "cache_read": usage.cache_read_tokens,
        }
        return {"tokens": tokens, "context_percentage": self.get_percentage(), **size}

    @classmethod
    def from_run_stats(
        cls, stats: Mapping[str, object], model: str = "claude-sonnet"
    ) -> "ContextService":
        """Restore a service from `stats`; the percentage is computed again.

        Tokens and window size may be absent: then nothing was sent, and the model's window is used.
        """
        size = get_path(stats, "context_window_size")
        service = cls(model, None if size is None else _check_size("context_window_size", size))
        if get_path(stats, "tokens") is not None:
            service._usage = _to_token_usage(RUN_STATS.usage(stats))
        return service


def _window_size(model: str) -> int:
    """The table above, then the catalogue, then the default; ids with [1m] as Claude Code does."""
    marked = (
        window_of(ResolveContext(agent="claude", model=model))
        if model.endswith(LONG_CONTEXT_SUFFIX)
        else None
    )
    window = marked or window_of(ResolveContext(model=model), Overrides(MODEL_CONTEXT_WINDOWS))
    return window.tokens if window else DEFAULT_CONTEXT_WINDOW


def _check_size(field: str, size: object) -> int:
    if type(size) is not int or size <= 0:
        raise InvalidUsage(field, size, "an integer above 0")
    return size


def _to_token_usage(usage: Usage | None) -> TokenUsage:
    """A usage under the names of that design; without tokens if the message was no call."""
    if usage is None:
        return TokenUsage()
    return TokenUsage(usage.input, usage.output, usage.cache_write, usage.cache_read)
