"""The `claude-agent-sdk` package: its messages are lines of Claude Code's stream as objects.

They are converted back to lines, and read by the parser of that stream.
"""

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from brimline.context.events import AnyEvent, Cleared
from brimline.context.providers.rows import get_path
from brimline.sdk.memory import StreamMemory


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of a message or line, or None; the thread is taken from the message."""
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
