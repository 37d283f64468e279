"""Copilot CLI's hooks: events and input as Claude Code's, with answers of its own.

Files of hooks below its folder need no trust. In a folder that the user trusts, Copilot also runs
the hooks of a project's `.claude/settings.json` (1.0.102): a variable of its hooks shows these.

Of a subagent's hooks the session is the subagent's own id. A compaction is followed by no hook:
what has to be said after it is said with the next prompt or tool result.
"""

from pathlib import Path

import msgspec

from brimline.agents.copilot.paths import events_file, root
from brimline.agents.hook_adapter import HookAdapter, HookInput, HookRequest, text_size
from brimline.agents.hook_command import HOOK_NAME, HookCommand
from brimline.agents.install_spec import (
    InstallSpec,
    McpPlace,
    McpSpec,
    Scope,
    stdio_server,
)
from brimline.agents.observations import Observation, Reply
from brimline.agents.transcripts.source import Places
from brimline.files.foreign_json import ABSENT, JsonDecoder
from brimline.files.jsonc import Json


class _ToolResult(msgspec.Struct, frozen=True):
    text_result_for_llm: msgspec.Raw = ABSENT


class CopilotInput(HookInput, frozen=True):
    """What Copilot CLI writes; a tool's result has another name than in Claude Code."""

    tool_result: _ToolResult = _ToolResult()


class CopilotOutput(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What it takes: the form of Claude Code's answers reaches the model of no event of ours."""

    additional_context: str | None = None
    decision: str | None = None
    reason: str | None = None


_hook_input = JsonDecoder(CopilotInput)


class CopilotHooks(HookAdapter):
    """Most hooks name no transcript: it follows from the session's id."""

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        hook_input = _hook_input.decode(request.body)
        if hook_input.agent_id is not None:
            return None  # a subagent's
        observation = self.observe_main(request, hook_input, at, late)
        if observation is None:
            return None
        path = observation.transcript or str(events_file(_root(request), observation.session))
        added = observation.added_bytes + text_size(hook_input.tool_result.text_result_for_llm)
        return msgspec.structs.replace(observation, transcript=path, added_bytes=added)

    def encode_reply(self, hook_event: str, reply: Reply) -> bytes:
        if reply.stop_feedback is not None:
            output = CopilotOutput(decision="block", reason=reply.stop_feedback)
        elif reply.context is not None:
            output = CopilotOutput(additional_context=reply.context)
        else:
            return b""
        return msgspec.json.encode(output) + b"\n"


def _root(request: HookRequest) -> Path:
    """The client's folder: that of the hook's own file, or by the variables."""
    folder = Path(request.env.get("COPILOT_HOOK_DIR", ""))
    if "COPILOT_HOME" not in request.env and folder.parts[-2:] == (".copilot", "hooks"):
        return folder.parent
    return root(Places(Path.home(), request.env))


HOOKS = CopilotHooks()


def _mcp_place(places: Places, scope: Scope, cwd: Path) -> McpPlace | None:
    """The user's list; whether 1.0.102 reads one of a project is not known."""
    file = root(places) / "mcp-config.json"
    return McpPlace(file, ("mcpServers", HOOK_NAME)) if scope == "user" else None


def _mcp_server(command: HookCommand) -> dict[str, Json]:
    return {"type": "local", **stdio_server(command), "tools": ["*"]}


INSTALL_SPEC = InstallSpec(
    agent="copilot",
    user_file=lambda places: root(places) / "hooks" / "brimline.json",
    project_file=".github/hooks/brimline.json",
    events=(
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "Stop",
        "PreCompact",
        "SessionEnd",
    ),
    next_step="Open sessions need a restart.",
    mcp=McpSpec(_mcp_place, _mcp_server),
)
