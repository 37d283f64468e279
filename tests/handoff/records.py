"""Generated records as the clients write them."""

import json
from pathlib import Path
from typing import TypeAlias

from hypothesis import strategies as st

FIXTURES = Path(__file__).parent.parent / "fixtures"

AT = "2026-01-02T03:04:05.000Z"
EPOCH = 1_767_323_045.0  # AT in seconds


# Any JSON value.
VALUES: st.SearchStrategy["Json"] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab\0é", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=4,
)


Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"


@st.composite
def broken(draw: st.DrawFn, records: list[Json]) -> bytes:
    """Bytes, any JSON, or a record with one value, however deep, replaced."""
    if draw(st.booleans()):
        return draw(st.binary() | VALUES.map(encoded))
    return encoded(_replaced(draw, draw(st.sampled_from(records))))


def _replaced(draw: st.DrawFn, value: Json) -> Json:
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 3)) == 0:
        return draw(VALUES)
    if isinstance(value, dict):
        key = draw(st.sampled_from(sorted(value)))
        return value | {key: _replaced(draw, value[key])}
    place = draw(st.integers(0, len(value) - 1))
    return [*value[:place], _replaced(draw, value[place]), *value[place + 1 :]]


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def claude(kind: str, content: object, **more: object) -> bytes:
    """A record of Claude Code with a message."""
    message = {"role": kind, "content": content, "model": "claude-opus-5"}
    place = {"cwd": "/home/dev/project", "gitBranch": "main", "timestamp": AT}
    return encoded({"type": kind, "message": message, **place, **more})


def user_record(text: str, **more: object) -> bytes:
    return claude("user", text, **more)


def reply_record(text: str, **more: object) -> bytes:
    return claude("assistant", [{"type": "text", "text": text}], **more)


def tool_use(id: str, name: str, **arguments: object) -> bytes:
    return claude("assistant", [{"type": "tool_use", "id": id, "name": name, "input": arguments}])


def tool_result(id: str, text: object, failed: bool = False, **more: object) -> bytes:
    block = {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}
    return claude("user", [block], **more)


def command_run(command: str, output: str, failed: bool = False) -> list[bytes]:
    """A command of Claude Code and its output."""
    return [tool_use(command, "Bash", command=command), tool_result(command, output, failed)]


def codex_record(payload: object, kind: str = "response_item") -> bytes:
    return encoded({"timestamp": AT, "type": kind, "payload": payload})


def codex_message(role: str, text: str) -> bytes:
    return codex_record(
        {"type": "message", "role": role, "content": [{"type": "text", "text": text}]}
    )


def codex_call(id: str, name: str, **arguments: object) -> bytes:
    call = {
        "type": "function_call",
        "name": name,
        "arguments": json.dumps(arguments),
        "call_id": id,
    }
    return codex_record(call)


def codex_output(id: str, output: object, kind: str = "function_call_output") -> bytes:
    return codex_record({"type": kind, "call_id": id, "output": output})
