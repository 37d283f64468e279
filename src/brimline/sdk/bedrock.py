"""Amazon Bedrock's Converse: answers and stream events, which are dicts."""

from collections.abc import Sequence

from brimline.context.events import AnyEvent, Call
from brimline.context.providers.rows import CountRow, UsageShape, get_path, get_text
from brimline.sdk.memory import StreamMemory

CONVERSE = UsageShape(
    "disjoint",
    (
        CountRow("input", ("inputTokens",), required=True),
        CountRow("cache_read", ("cacheReadInputTokens",)),
        CountRow("cache_write", ("cacheWriteInputTokens",)),
        CountRow("output", ("outputTokens",), required=True),
    ),
)

SILENT_EVENTS = (
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
)


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of an answer or of a stream's last event, or None."""
    reported = get_path(seen, "usage")
    if reported is None:
        reported = get_path(seen, "metadata.usage")
    if get_path(reported, "inputTokens") is None:
        is_event = any(get_path(seen, name) is not None for name in SILENT_EVENTS)
        return [] if is_event else None
    name = get_text(seen, "ResponseMetadata.RequestId") or memory.new_call_id()
    return [Call(id=name, usage=CONVERSE.usage(reported), thread=thread)]
