"""Pydantic AI's usage of one request, for all providers: the cache is a part of the prompt."""

from brimline.context.providers.rows import CountRow, UsageShape

REQUEST = UsageShape(
    "pydantic-ai-request",
    "subset",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("cache_read_tokens",)),
        CountRow("cache_write", ("cache_write_tokens",)),
        CountRow("cache_write_1h", ("cache_write_1h_tokens",)),
        CountRow("output", ("output_tokens",), required=True),
        CountRow("reasoning", ("output_reasoning_tokens", "details.reasoning_tokens")),
    ),
)
