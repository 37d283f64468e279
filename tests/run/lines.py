"""Generated lines of Claude Code's stream, and the recorded ones of every agent."""

import json
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent.parent / "fixtures"
SESSION = "5e551011-0000-4000-8000-000000000001"
MODEL = "claude-sonnet-4-5"
WINDOW_TOKENS = 200_000  # of that model in Claude Code


def packed(line: dict[str, Any]) -> bytes:
    """A record as a line."""
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def init() -> bytes:
    record = {"cwd": "/project", "session_id": SESSION, "model": MODEL}
    return packed({"type": "system", "subtype": "init", **record, "claude_code_version": "2.1.325"})


def call(id: str, sent: int, text: str = "Hm.", parent: str | None = None) -> bytes:
    """A model reply whose prompt had this many tokens."""
    usage = {
        "input_tokens": 4,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": sent - 4,
        "output_tokens": 1,
    }
    content = [{"type": "text", "text": text}]
    message = {"id": id, "model": MODEL, "role": "assistant", "content": content, "usage": usage}
    return packed(
        {"type": "assistant", "message": message, "parent_tool_use_id": parent,
         "session_id": SESSION}
    )  # fmt: skip


def result(**fields: Any) -> bytes:
    record = {"is_error": False, "num_turns": 2, "total_cost_usd": 0.5, "result": "Done."}
    return packed({"type": "result", "session_id": SESSION, **record, **fields})


def recorded(agent: str, scene: str = "tool-loop", number: int = 1) -> bytes:
    """The recorded output of an agent in a scene."""
    return (FIXTURES / agent / scene / f"stream-{number}.jsonl").read_bytes()
