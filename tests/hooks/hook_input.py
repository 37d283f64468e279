"""Hook input of agents, as the daemon gets it."""

import json
from typing import Any, TypeAlias

from brimline.agents.hook_adapter import HookRequest
from brimline.agents.observations import ObservationKind

# An event, its own fields, and the kind of observation.
Row: TypeAlias = tuple[str, dict[str, Any], ObservationKind]

# Events of both Claude Code and Codex.
COMMON_EVENTS: list[Row] = [
    ("SessionStart", {"source": "startup"}, "started"),
    ("SessionStart", {"source": "resume"}, "started"),
    ("SessionStart", {"source": "compact"}, "compacted"),
    ("SessionStart", {"source": "clear"}, "cleared"),
    ("UserPromptSubmit", {"prompt": "Go."}, "prompt"),
    ("PostToolUse", {"tool_name": "Bash"}, "tool"),
    ("Stop", {"stop_hook_active": False}, "stopped"),
    ("PreCompact", {"trigger": "auto"}, "compacting"),
    ("PostCompact", {"trigger": "auto"}, "compacted"),
    ("SessionEnd", {"reason": "other"}, "ended"),
]

SESSION = "11111111-1111-4111-8111-111111111111"
AT = 1_000.0


def hook_request(
    agent: str, event: str, env: dict[str, str] | None = None, **more: Any
) -> HookRequest:
    """Build a hook request with the fields that every client sends."""
    common = {"session_id": SESSION, "hook_event_name": event, "cwd": "/project"}
    body = json.dumps({"transcript_path": "/no/transcript.jsonl", **common, **more})
    return HookRequest("hook", agent, "1000-1", 1, env or {}, body.encode())
