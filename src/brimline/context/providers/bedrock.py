"""Amazon Bedrock's Converse: cache reads and writes are not counted in the prompt."""

from brimline.context.providers.rows import CountRow, UsageShape

CONVERSE = UsageShape(
    "bedrock-converse",
    "disjoint",
    (
        CountRow("input", ("inputTokens",), required=True),
        CountRow("cache_read", ("cacheReadInputTokens",)),
        CountRow("cache_write", ("cacheWriteInputTokens",)),
        CountRow("output", ("outputTokens",), required=True),
    ),
)
