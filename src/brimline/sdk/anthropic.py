"""The `anthropic` package: messages, raw SSE events, and the events of its stream helper."""

from collections.abc import Iterator, Sequence

from brimline.context.events import AnyEvent, Call, Edited, Trimmed, compaction_thread
from brimline.context.providers.anthropic import (
    ApiCompaction,
    StreamedMessage,
    find_api_compaction,
    other_passes,
    service_tier_of,
    spent_on,
    usage_of,
)
from brimline.context.providers.rows import get_items, get_path, get_text
from brimline.sdk.memory import StreamMemory

# Stream events without usage.
SILENT_EVENTS = frozenset(
    {
        "citation",
        "compaction",
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "error",
        "input_json",
        "ping",
        "signature",
        "text",
        "thinking",
    }
)


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of a message or a stream event, or None."""
    match get_path(seen, "type"):
        case "message" if (
            get_path(seen, "role") == "assistant" and get_path(seen, "usage") is not None
        ):
            return _read_message(seen, memory, thread)
        case "message_start" | "message_delta":
            return _read_stream_event(seen, memory, thread)
        case "message_stop":
            message = get_path(seen, "message")
            return [] if message is None else _read_message(message, memory, thread)
        case kind if isinstance(kind, str) and kind in SILENT_EVENTS:
            return []
        case _:
            return None


def _read_message(message: object, memory: StreamMemory, thread: str) -> list[AnyEvent]:
    """A whole message. Its stream takes precedence over what a helper gathered: that may lack the
    passes, and have their sums alone."""
    name, reported = get_text(message, "id"), get_path(message, "usage")
    if name is None or (memory.is_streamed(name) and get_path(reported, "iterations") is None):
        return []
    usage = usage_of(reported)
    if usage is None:
        return _with_edits([], message, name, thread)
    model, tier = get_text(message, "model"), service_tier_of(reported)
    others = other_passes(reported, model, tier)
    final = get_path(message, "stop_reason") is not None
    calls = _call_events(StreamedMessage(name, model, usage, final, others, tier), thread)
    return _with_edits(calls, message, name, thread)


def _read_stream_event(event: object, memory: StreamMemory, thread: str) -> list[AnyEvent]:
    message = memory.message_stream(thread).feed(event)
    if message is None:
        return _with_edits([], event, None, thread)
    if message.final:
        memory.mark_streamed(message.id)
    return _with_edits(_call_events(message, thread), event, message.id, thread)


def _call_events(message: StreamedMessage, thread: str) -> list[AnyEvent]:
    call = Call(
        id=message.id,
        usage=message.usage,
        model=message.model,
        thread=thread,
        final=message.final,
        service_tier=message.service_tier,
    )
    return [*spent_on(message.others, message.id, thread), call]


def _with_edits(
    calls: list[AnyEvent], message: object, name: str | None, thread: str
) -> list[AnyEvent]:
    """Add what the API itself did to the prompt: cleared tool results or thinking, or compacted.

    After a compaction without a call of the thread behind it, the occupancy is unknown.
    """
    compaction = find_api_compaction(get_path(message, "usage"))
    edits = [] if name is None else list(_edits(message, name, compaction, thread))
    is_unknown = compaction is not None and not compaction.has_call_after
    return [*edits, *calls, *([Trimmed(thread=thread)] if is_unknown else ())]


def _edits(
    message: object, name: str, compaction: ApiCompaction | None, thread: str
) -> Iterator[AnyEvent]:
    for edit in get_items(message, "context_management.applied_edits"):
        tokens = get_path(edit, "cleared_input_tokens")
        yield Edited(
            call=name,
            kind=get_text(edit, "type") or "edit",
            tokens=tokens if isinstance(tokens, int) else None,
            thread=thread,
        )
    if compaction is not None:
        yield Edited(call=name, kind="compaction", thread=thread)
        yield Call(
            id=f"{name}/compaction", usage=compaction.usage, thread=compaction_thread(thread)
        )
