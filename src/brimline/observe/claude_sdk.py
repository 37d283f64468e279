"""The `claude-agent-sdk` package: its messages are lines of Claude Code's stream, made objects.

They are made lines again and read by the parser of that stream: one place knows what a line tells.
"""

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from brimline.events import AnyEvent, Cleared
from brimline.observe.memory import Memory
from brimline.providers.rows import walk

NAME = "a Claude Agent SDK message or a line of Claude Code's stream"


def read(seen: object, memory: Memory, thread: str) -> Sequence[AnyEvent] | None:
    """The events in a message or line; None where it is neither. Its thread is its own."""
    if hasattr(seen, "new_conversation_id"):
        return [] if memory.told(walk(seen, "uuid")) else [Cleared()]
    line = _line(seen)
    if line is None:
        return None
    if line.get("subtype") == "compact_boundary" and memory.told(line.get("uuid")):
        return []
    found = memory.claude().feed(msgspec.json.encode(line, enc_hook=str))
    return list(found or ())


def _line(seen: object) -> Mapping[str, object] | None:
    if isinstance(seen, Mapping):
        given = cast("Mapping[str, object]", seen)
        return given if "session_id" in given and isinstance(given.get("type"), str) else None
    if hasattr(seen, "message_id") and hasattr(seen, "parent_tool_use_id"):
        return _assistant(seen)
    if hasattr(seen, "event") and hasattr(seen, "parent_tool_use_id"):
        return _picked(seen, "stream_event", "event", "parent_tool_use_id", "session_id")
    if hasattr(seen, "subtype") and hasattr(seen, "num_turns"):
        return {**_picked(seen, "result", "usage"), "modelUsage": _windows(seen)}
    if hasattr(seen, "subtype") and isinstance(data := walk(seen, "data"), Mapping):
        return cast("Mapping[str, object]", data)
    told = hasattr(seen, "parent_tool_use_id") and hasattr(seen, "content")
    return {"type": "user"} if told else None


def _assistant(message: object) -> dict[str, object]:
    inner = {
        "id": walk(message, "message_id"),
        "model": walk(message, "model"),
        "usage": walk(message, "usage"),
    }
    line = _picked(message, "assistant", "parent_tool_use_id", "session_id")
    return {**line, "message": inner}


def _windows(result: object) -> Mapping[str, object]:
    told = walk(result, "model_usage")
    return cast("Mapping[str, object]", told) if isinstance(told, Mapping) else {}


def _picked(message: object, kind: str, *fields: str) -> dict[str, object]:
    return {"type": kind, **{field: walk(message, field) for field in fields}}
