"""Attributes of an OpenTelemetry span by the conventions `gen_ai`: the cache is in the prompt."""

from collections.abc import Mapping
from typing import Any

import msgspec

from brimline.context.providers.rows import CountRow, UsageShape
from brimline.context.usage import Usage

# The attributes' names without `gen_ai.usage.`; both spellings of cache writes are in use.
PREFIX = "gen_ai.usage."
SPAN = UsageShape(
    "subset",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("cache_read.input_tokens",)),
        CountRow("cache_write", ("cache_creation.input_tokens", "cache_write.input_tokens")),
        CountRow("output", ("output_tokens",), required=True),
        CountRow("reasoning", ("reasoning.output_tokens",)),
    ),
)
# Some instrumentations of Anthropic's SDK hand on its own counts, which add up.
DISJOINT_SPAN = msgspec.structs.replace(SPAN, cached="disjoint")

OPERATION = "gen_ai.operation.name"
# One call each: the names of the conventions, then those of LiteLLM 1.106.
CALL_OPERATIONS = frozenset({"chat", "generate_content", "text_completion"}) | frozenset(
    {"acompletion", "anthropic_messages", "aresponses", "completion", "responses"}
)
RESPONSE_ID = "gen_ai.response.id"
# Google ADK 2.13 has only the model that was asked for.
MODEL, ASKED_MODEL = "gen_ai.response.model", "gen_ai.request.model"


def has_span_usage(attributes: Mapping[str, Any]) -> bool:
    return f"{PREFIX}input_tokens" in attributes


def read_span_usage(attributes: Mapping[str, Any]) -> Usage:
    """Return the usage in a span's attributes; raises InvalidUsage.

    By the conventions the prompt includes the cache. If the cache alone is more, it does not.
    """
    counts = _nest_counts(attributes)
    usage = DISJOINT_SPAN.usage(counts)
    cached = usage.cache_read + usage.cache_write
    return usage if cached > usage.input else SPAN.usage(counts)


def _nest_counts(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """`cache_read.input_tokens` as a field of a field, even if `cache_read` is there, too."""
    counts: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for name, value in attributes.items():
        if name.startswith(PREFIX):
            parent, _, last = name.removeprefix(PREFIX).rpartition(".")
            (parts.setdefault(parent, {}) if parent else counts)[last] = value
    return counts | parts
