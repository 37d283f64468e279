"""The `anthropic` package, and `claude-agent-sdk`, whose messages are Claude Code's stream."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import msgspec

from brimline.context.events import (
    API_COMPACTION,
    AnyEvent,
    Call,
    Cleared,
    Edited,
    Trimmed,
    compaction_thread,
)
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
from brimline.sdk.stream import StreamMemory

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


def read_anthropic(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of a message, a raw SSE event or an event of the stream helper, or None."""
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
    return [*calls, *edits, *([Trimmed(thread=thread)] if is_unknown else ())]


def _edits(
    message: object, name: str, compaction: ApiCompaction | None, thread: str
) -> Iterator[AnyEvent]:
    if compaction is not None:
        id = f"{name}/compaction"
        call = name if compaction.has_call_after else id
        yield Edited(call=call, kind=API_COMPACTION, thread=thread)
        yield Call(id=id, usage=compaction.usage, thread=compaction_thread(thread))
    for edit in get_items(message, "context_management.applied_edits"):
        tokens = get_path(edit, "cleared_input_tokens")
        yield Edited(
            call=name,
            kind=get_text(edit, "type") or "edit",
            tokens=tokens if isinstance(tokens, int) else None,
            thread=thread,
        )


def read_claude_agent(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of a `claude-agent-sdk` message or line, or None; its thread is its own.

    A message is converted back to a line, for the parser of that stream.
    """
    if hasattr(seen, "new_conversation_id"):
        return [] if memory.is_repeated(get_path(seen, "uuid")) else [Cleared()]
    line = _to_line(seen)
    if line is None:
        return None
    if line.get("subtype") == "compact_boundary" and memory.is_repeated(line.get("uuid")):
        return []
    events = memory.claude_stream().feed(msgspec.json.encode(line, enc_hook=str))
    return list(events or ())


def _to_line(seen: object) -> Mapping[str, object] | None:
    if isinstance(seen, Mapping):
        line = cast("Mapping[str, object]", seen)
        return line if "session_id" in line and isinstance(line.get("type"), str) else None
    if hasattr(seen, "message_id") and hasattr(seen, "parent_tool_use_id"):
        return _assistant_line(seen)
    if hasattr(seen, "event") and hasattr(seen, "parent_tool_use_id"):
        return _pick_fields(seen, "stream_event", "event", "parent_tool_use_id", "session_id")
    if hasattr(seen, "subtype") and hasattr(seen, "num_turns"):
        return {**_pick_fields(seen, "result", "usage"), "modelUsage": _model_usage(seen)}
    if hasattr(seen, "subtype") and isinstance(data := get_path(seen, "data"), Mapping):
        return cast("Mapping[str, object]", data)
    is_user = hasattr(seen, "parent_tool_use_id") and hasattr(seen, "content")
    return {"type": "user"} if is_user else None


def _assistant_line(message: object) -> dict[str, object]:
    inner = {
        "id": get_path(message, "message_id"),
        "model": get_path(message, "model"),
        "usage": get_path(message, "usage"),
    }
    line = _pick_fields(message, "assistant", "parent_tool_use_id", "session_id")
    return {**line, "message": inner}


def _model_usage(result: object) -> Mapping[str, object]:
    usage = get_path(result, "model_usage")
    return cast("Mapping[str, object]", usage) if isinstance(usage, Mapping) else {}


def _pick_fields(message: object, kind: str, *fields: str) -> dict[str, object]:
    return {"type": kind, **{field: get_path(message, field) for field in fields}}
