"""The `anthropic` package: messages, raw SSE events, and the events of its stream helper."""

from collections.abc import Iterator, Sequence

from brimline.context.events import AnyEvent, Call, Edited, Trimmed, compaction_thread
from brimline.context.providers.anthropic import (
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
        case "message_start":
            return _streamed_call(seen, memory, thread)
        case "message_delta":
            return _delta_events(seen, memory, thread)
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
    name = get_text(message, "id")
    streamed = name is not None and memory.is_streamed(name)
    if streamed and get_path(message, "usage.iterations") is None:
        return []
    return list(_message_events(message, thread))


def _message_events(message: object, thread: str) -> Iterator[AnyEvent]:
    name = get_text(message, "id")
    if name is None:
        return
    reported = get_path(message, "usage")
    usage = usage_of(reported)
    yield from _edits(message, reported, name, thread)
    if usage is not None:
        model = get_text(message, "model")
        tier = service_tier_of(reported)
        yield from spent_on(other_passes(reported, model, tier), name, thread)
        yield Call(
            id=name,
            usage=usage,
            model=model,
            thread=thread,
            final=get_path(message, "stop_reason") is not None,
            service_tier=tier,
        )
    yield from _unknown_occupancy(reported, thread)


def _streamed_call(event: object, memory: StreamMemory, thread: str) -> list[AnyEvent]:
    message = memory.message_stream(thread).feed(event)
    if message is None:
        return []
    if message.final:
        memory.mark_streamed(message.id)
    return [
        *spent_on(message.others, message.id, thread),
        Call(
            id=message.id,
            usage=message.usage,
            model=message.model,
            thread=thread,
            final=message.final,
            service_tier=message.service_tier,
        ),
    ]


def _delta_events(event: object, memory: StreamMemory, thread: str) -> list[AnyEvent]:
    calls = _streamed_call(event, memory, thread)
    reported = get_path(event, "usage")
    name = next((call.id for call in calls if isinstance(call, Call)), None)
    edits = [] if name is None else list(_edits(event, reported, name, thread))
    return [*edits, *calls, *_unknown_occupancy(reported, thread)]


def _edits(message: object, reported: object, name: str, thread: str) -> Iterator[AnyEvent]:
    """What the API itself did to the prompt: cleared tool results or thinking, or compacted."""
    for edit in get_items(message, "context_management.applied_edits"):
        tokens = get_path(edit, "cleared_input_tokens")
        yield Edited(
            call=name,
            kind=get_text(edit, "type") or "edit",
            tokens=tokens if isinstance(tokens, int) else None,
            thread=thread,
        )
    if (compaction := find_api_compaction(reported)) is not None:
        yield Edited(call=name, kind="compaction", thread=thread)
        yield Call(
            id=f"{name}/compaction", usage=compaction.usage, thread=compaction_thread(thread)
        )


def _unknown_occupancy(reported: object, thread: str) -> Iterator[AnyEvent]:
    """After a compaction without a call of the thread behind it, the occupancy is unknown."""
    compaction = find_api_compaction(reported)
    if compaction is not None and not compaction.has_call_after:
        yield Trimmed(thread=thread)
