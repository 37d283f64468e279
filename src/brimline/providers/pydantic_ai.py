"""Pydantic AI's usage of one request, whatever the provider: the cache is a part of the prompt."""

from brimline.providers.rows import Row, Shape

REQUEST = Shape(
    "pydantic-ai-request",
    "subset",
    (
        Row("input", ("input_tokens",), required=True),
        Row("cache_read", ("cache_read_tokens",)),
        Row("cache_write", ("cache_write_tokens",)),
        Row("output", ("output_tokens",), required=True),
        Row("reasoning", ("output_reasoning_tokens", "details.reasoning_tokens")),
    ),
)
