"""LangChain: messages of a model, and the chunks of its stream, which add up to one message."""

from collections.abc import Mapping, Sequence

from brimline.context.events import AnyEvent, Call
from brimline.context.providers.rows import CountRow, UsageShape, get_path, get_text
from brimline.sdk.memory import StreamMemory

# langchain-anthropic sets `cache_creation` to 0 if it has the writes by their time to live.
USAGE_METADATA = UsageShape(
    "subset",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("input_token_details.cache_read",)),
        CountRow("cache_write", ("input_token_details.cache_creation",)),
        CountRow("cache_write", ("input_token_details.ephemeral_5m_input_tokens",)),
        CountRow("cache_write", ("input_token_details.ephemeral_1h_input_tokens",)),
        CountRow("cache_write_1h", ("input_token_details.ephemeral_1h_input_tokens",)),
        CountRow("output", ("output_tokens",), required=True),
        CountRow("reasoning", ("output_token_details.reasoning",)),
    ),
)

MESSAGE_TYPES = frozenset({"ai", "AIMessageChunk"})
OTHER_TYPES = frozenset({"human", "system", "tool", "HumanMessageChunk", "ToolMessageChunk"})


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of a message or chunk, or None."""
    if not isinstance(get_path(seen, "response_metadata"), Mapping):
        return None
    kind = get_text(seen, "type")
    if kind not in MESSAGE_TYPES:
        return [] if kind in OTHER_TYPES else None
    reported = get_path(seen, "usage_metadata")
    if reported is None:
        return []
    name = get_text(seen, "id", "response_metadata.id") or memory.new_call_id()
    usage = USAGE_METADATA.usage(reported)
    is_chunk = kind == "AIMessageChunk"
    return [
        Call(
            id=name,
            usage=memory.add_chunk(name, usage) if is_chunk else usage,
            model=get_text(
                seen, "response_metadata.model_name", "response_metadata.model", "model_name"
            ),
            thread=thread,
            final=not is_chunk or usage.output > 0,
        )
    ]
