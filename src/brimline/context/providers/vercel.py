"""Vercel's AI SDK, for all providers: the cache is a part of the prompt. The newest name first."""

from brimline.context.providers.rows import CountRow, UsageShape

GENERATED = UsageShape(
    "vercel-ai-sdk",
    "subset",
    (
        CountRow("input", ("inputTokens",), required=True),
        CountRow("cache_read", ("inputTokenDetails.cacheReadTokens", "cachedInputTokens")),
        CountRow("cache_write", ("inputTokenDetails.cacheWriteTokens",)),
        CountRow("output", ("outputTokens",), required=True),
        CountRow("reasoning", ("outputTokenDetails.reasoningTokens", "reasoningTokens")),
    ),
)
