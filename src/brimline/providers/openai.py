"""OpenAI Responses and Chat Completions: cached tokens are a part of the prompt."""

from brimline.providers.rows import CountRow, UsageShape

RESPONSES = UsageShape(
    "openai-responses",
    "subset",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("input_tokens_details.cached_tokens",)),
        CountRow("cache_write", ("input_tokens_details.cache_write_tokens",)),
        CountRow("output", ("output_tokens",), required=True),
        CountRow("reasoning", ("output_tokens_details.reasoning_tokens",)),
    ),
)

CHAT = UsageShape(
    "openai-chat",
    "subset",
    (
        CountRow("input", ("prompt_tokens",), required=True),
        CountRow("cache_read", ("prompt_tokens_details.cached_tokens",)),
        CountRow("cache_write", ("prompt_tokens_details.cache_write_tokens",)),
        CountRow("output", ("completion_tokens",), required=True),
        CountRow("reasoning", ("completion_tokens_details.reasoning_tokens",)),
    ),
)
