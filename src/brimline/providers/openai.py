"""OpenAI: Responses and Chat Completions; the cached tokens are a part of the prompt."""

from brimline.providers.rows import Row, Shape, walk
from brimline.usage import Usage

RESPONSES = Shape(
    "openai-responses",
    "subset",
    (
        Row("input", ("input_tokens",), required=True),
        Row("cache_read", ("input_tokens_details.cached_tokens",)),
        Row("cache_write", ("input_tokens_details.cache_write_tokens",)),
        Row("output", ("output_tokens",), required=True),
        Row("reasoning", ("output_tokens_details.reasoning_tokens",)),
    ),
)

CHAT = Shape(
    "openai-chat",
    "subset",
    (
        Row("input", ("prompt_tokens",), required=True),
        Row("cache_read", ("prompt_tokens_details.cached_tokens",)),
        Row("cache_write", ("prompt_tokens_details.cache_write_tokens",)),
        Row("output", ("completion_tokens",), required=True),
        Row("reasoning", ("completion_tokens_details.reasoning_tokens",)),
    ),
)


def responses_usage(answer: object) -> Usage | None:
    """The usage of a response or of a stream event that carries one; None where it has none yet."""
    reported = walk(answer, "usage")
    if reported is None:
        reported = walk(answer, "response.usage")
    return None if reported is None else RESPONSES.usage(reported)


def chat_usage(answer: object) -> Usage | None:
    """The usage of a completion or of the chunk that carries it; None on every other chunk."""
    reported = walk(answer, "usage")
    return None if reported is None else CHAT.usage(reported)
