"""Gemini generateContent: the cache is a part of the prompt, thoughts are beside the answer."""

from brimline.providers.rows import Row, Shape, walk
from brimline.usage import Usage

GENERATE = Shape(
    "gemini-generate-content",
    "subset",
    (
        Row("input", ("promptTokenCount", "prompt_token_count"), required=True),
        Row("input", ("toolUsePromptTokenCount", "tool_use_prompt_token_count")),
        Row("cache_read", ("cachedContentTokenCount", "cached_content_token_count")),
        Row("output", ("candidatesTokenCount", "candidates_token_count")),
        Row("output", ("thoughtsTokenCount", "thoughts_token_count")),
        Row("reasoning", ("thoughtsTokenCount", "thoughts_token_count")),
    ),
)


def generate_usage(answer: object) -> Usage | None:
    """The usage of an answer or a streamed chunk, the last of which counts; None without one."""
    reported = walk(answer, "usageMetadata")
    if reported is None:
        reported = walk(answer, "usage_metadata")
    return None if reported is None else GENERATE.usage(reported)
