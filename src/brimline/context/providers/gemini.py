"""Gemini: the cache is a part of the prompt, thoughts are no part of the answer."""

from brimline.context.providers.rows import CountRow, UsageShape, get_path
from brimline.context.usage import Usage

GENERATE = UsageShape(
    "gemini-generate-content",
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


INTERACTION = UsageShape(
    "gemini-interaction",
    "subset",
    (
        CountRow("input", ("total_input_tokens",), required=True),
        CountRow("input", ("total_tool_use_tokens",)),
        CountRow("cache_read", ("total_cached_tokens",)),
        CountRow("output", ("total_output_tokens",)),
        CountRow("output", ("total_thought_tokens",)),
        CountRow("reasoning", ("total_thought_tokens",)),
    ),
)


def collapse_requests(usage: Usage, initial: object) -> Usage:
    """The usage of an answer for which the SDK made several requests and added up their prompts.

    `initial` is the first prompt: with all output it is what is held. The usage is returned as it
    is if there was one request, or if the first prompt is unknown.
    """
    if type(initial) is not int or not 0 < initial < usage.sent:
        return usage
    cached = min(usage.cache_read, initial)
    return Usage(initial - cached, cached, 0, usage.output, usage.reasoning)


def generate_usage(answer: object) -> Usage | None:
    """The usage of an answer or a streamed chunk, or None; the last chunk counts."""
    reported = get_path(answer, "usageMetadata")
    if reported is None:
        reported = get_path(answer, "usage_metadata")
    return None if reported is None else GENERATE.usage(reported)
