"""OpenAI Responses and Chat Completions: cached tokens are a part of the prompt."""

from brimline.providers.rows import CountRow, UsageShape, get_path
from brimline.usage import Usage

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


def responses_usage(answer: object) -> Usage | None:
    """The usage of a response or of a stream event with one, or None."""
    reported = get_path(answer, "usage")
    if reported is None:
        reported = get_path(answer, "response.usage")
    return None if reported is None else RESPONSES.usage(reported)


def chat_usage(answer: object) -> Usage | None:
    """The usage of a completion or of the chunk with it, or None."""
    reported = get_path(answer, "usage")
    return None if reported is None else CHAT.usage(reported)
