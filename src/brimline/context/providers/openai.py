"""OpenAI Responses and Chat Completions: cached tokens are a part of the prompt."""

from brimline.context.providers.rows import CountRow, UsageShape, get_path
from brimline.context.usage import Usage

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

# xAI's models count reasoning in addition to the completion tokens.
CHAT_WITH_SEPARATE_REASONING = UsageShape(
    "xai-chat",
    "subset",
    (
        *CHAT.rows,
        CountRow("output", ("completion_tokens_details.reasoning_tokens",)),
    ),
)


def chat_usage(reported: object) -> Usage:
    """The usage of a chat completion; its total shows whether it includes reasoning."""
    if get_path(reported, "completion_tokens_details.reasoning_tokens"):
        usage = CHAT_WITH_SEPARATE_REASONING.usage(reported)
        if get_path(reported, "total_tokens") == usage.held:
            return usage
    return CHAT.usage(reported)
