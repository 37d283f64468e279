"""Gemini: the cache is a part of the prompt, thoughts are no part of the answer."""

from brimline.context.providers.rows import CountRow, UsageShape, get_path
from brimline.context.usage import Usage

GENERATE = UsageShape(
    "subset",
    (
        CountRow("input", ("promptTokenCount", "prompt_token_count"), required=True),
        CountRow("input", ("toolUsePromptTokenCount", "tool_use_prompt_token_count")),
        CountRow("cache_read", ("cachedContentTokenCount", "cached_content_token_count")),
        CountRow("output", ("candidatesTokenCount", "candidates_token_count")),
        CountRow("output", ("thoughtsTokenCount", "thoughts_token_count")),
        CountRow("reasoning", ("thoughtsTokenCount", "thoughts_token_count")),
    ),
)


def generate_usage(answer: object) -> Usage | None:
    """The usage of an answer or a streamed chunk, or None; the last chunk counts."""
    reported = get_path(answer, "usageMetadata")
    if reported is None:
        reported = get_path(answer, "usage_metadata")
    return None if reported is None else GENERATE.usage(reported)
