"""LangChain's `usage_metadata`, for all providers: the cache is a part of the prompt."""

from brimline.context.providers.rows import CountRow, UsageShape

# langchain-anthropic sets `cache_creation` to 0 if it has the writes by their time to live.
USAGE_METADATA = UsageShape(
    "langchain-usage-metadata",
    "subset",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("input_token_details.cache_read",)),
        CountRow("cache_write", ("input_token_details.cache_creation",)),
        CountRow("cache_write", ("input_token_details.ephemeral_5m_input_tokens",)),
        CountRow("cache_write", ("input_token_details.ephemeral_1h_input_tokens",)),
        CountRow("cache_write_1h", ("input_token_details.ephemeral_1h_input_tokens",)),
        CountRow("output", ("output_tokens",), required=True),
        CountRow("reasoning", ("output_token_details.reasoning",)),
    ),
)
