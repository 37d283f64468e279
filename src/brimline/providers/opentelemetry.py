"""Attributes of an OpenTelemetry span by the conventions `gen_ai`: the cache is in the prompt."""

from brimline.providers.rows import CountRow, UsageShape

# The attributes' names without `gen_ai.usage.`; both spellings of cache writes are in use.
PREFIX = "gen_ai.usage."
SPAN = UsageShape(
    "opentelemetry-gen-ai",
    "subset",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("cache_read.input_tokens",)),
        CountRow("cache_write", ("cache_creation.input_tokens", "cache_write.input_tokens")),
        CountRow("output", ("output_tokens",), required=True),
        CountRow("reasoning", ("reasoning.output_tokens",)),
    ),
)
