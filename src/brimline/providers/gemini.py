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


INTERACTION = Shape(
    "gemini-interaction",
    "subset",
    (
        Row("input", ("total_input_tokens",), required=True),
        Row("input", ("total_tool_use_tokens",)),
        Row("cache_read", ("total_cached_tokens",)),
        Row("output", ("total_output_tokens",)),
        Row("output", ("total_thought_tokens",)),
        Row("reasoning", ("total_thought_tokens",)),
    ),
)


def without_hops(usage: Usage, initial: object) -> Usage:
    """The usage of an answer that its SDK gathered over several requests, each with all before it.

    The SDK adds their prompts up. `initial` is the first one's: with all that was answered it is
    what is held. Nothing changes where there was one request, or its prompt is not told.
    """
    if type(initial) is not int or not 0 < initial < usage.sent:
        return usage
    cached = min(usage.cache_read, initial)
    return Usage(initial - cached, cached, 0, usage.output, usage.reasoning)


def generate_usage(answer: object) -> Usage | None:
    """The usage of an answer or a streamed chunk, the last of which counts; None without one."""
    reported = walk(answer, "usageMetadata")
    if reported is None:
        reported = walk(answer, "usage_metadata")
    return None if reported is None else GENERATE.usage(reported)
