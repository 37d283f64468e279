"""Cohere's Chat: the cache is a part of the prompt."""

from brimline.context.providers.rows import CountRow, UsageShape

CHAT_V2 = UsageShape(
    "cohere-chat",
    "subset",
    (
        CountRow("input", ("tokens.input_tokens",), required=True),
        CountRow("cache_read", ("cached_tokens",)),
        CountRow("output", ("tokens.output_tokens",), required=True),
    ),
)
