"""What agents tell their hooks, as the daemon gets it."""

import json
from typing import Any, TypeAlias

from brimline.agents.hook_adapter import HookRequest
from brimline.observations import ObservationKind

Row: TypeAlias = tuple[str, dict[str, Any], ObservationKind]
"""An event, what is told with it, and what it is in the monitor's words."""

ALIKE: list[Row] = [
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
"""What Claude Code and Codex have in common."""

SESSION = "11111111-1111-4111-8111-111111111111"
AT = 1_000.0


def told(agent: str, event: str, env: dict[str, str] | None = None, **more: Any) -> HookRequest:
    """A hook's input, with what every client tells at every event."""
    common = {"session_id": SESSION, "hook_event_name": event, "cwd": "/project"}
    body = json.dumps({"transcript_path": "/no/transcript.jsonl", **common, **more})
    return HookRequest("hook", agent, "1000-1", 1, env or {}, body.encode())
