"""Gemini CLI's hooks: names of its own, and the usage of every call.

A subagent's hooks look like those of the session that it works for. settings.json may have
comments; commands are run by a shell, and the timeout is in milliseconds.

PreCompress is not installed: it fires before every call, whether anything is compressed or not, and
reports nothing; only the chat's file has a compression. Nor is AfterModel: every part of an answer
waits for it, and the chat's file has the usage as soon as its last part.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.agents.compaction_setting import CompactionSetting
from brimline.agents.gemini.paths import root
from brimline.agents.hook_adapter import HookAdapter, HookInput, HookRequest, text_size
from brimline.agents.hook_command import HOOK_NAME, HOOK_TIMEOUT_S, Hook, HookCommand
from brimline.agents.install_spec import DisableSetting, InstallSpec, McpPlace, McpSpec, Scope
from brimline.agents.observations import Observation
from brimline.agents.transcripts.source import MALFORMED, Places
from brimline.context.providers.gemini import generate_usage
from brimline.context.usage import Usage
from brimline.context.window import ResolveContext
from brimline.files.foreign_json import ABSENT, JsonDecoder
from brimline.files.jsonc import Dialect

# How the first message of a session begins; a subagent's is its task.
SESSION_OPENING = b'"<session_context>'

SUBAGENT_TOOL = "invoke_agent"  # the tool that runs a subagent

MAX_RESULT_BYTES = 40_000  # of a longer result the model gets the beginning and the end (0.61.0)


class _ModelMessage(msgspec.Struct, frozen=True):
    content: msgspec.Raw = ABSENT


class _ModelRequest(msgspec.Struct, frozen=True):
    model: str | None = None
    messages: tuple[_ModelMessage, ...] = ()


class _Candidate(msgspec.Struct, frozen=True, rename="camel"):
    finish_reason: str | None = None


class _ModelResponse(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a model's answer, and the usage so far; the last part has a finish reason."""

    candidates: tuple[_Candidate, ...] = ()
    usage_metadata: dict[str, int] | None = None


class _ToolResponse(msgspec.Struct, frozen=True, rename="camel"):
    llm_content: msgspec.Raw = ABSENT


class GeminiInput(HookInput, frozen=True):
    """What Gemini CLI writes: a tool's hook names the tool, a model's both sides of the call."""

    tool_name: str | None = None
    llm_request: _ModelRequest = _ModelRequest()
    llm_response: _ModelResponse = _ModelResponse()


_hook_input = JsonDecoder(GeminiInput)
_tool_response = JsonDecoder(_ToolResponse)


class GeminiHooks(HookAdapter):
    """Of a model's answer only the last part is observed, which has the usage."""

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        hook_input = _hook_input.decode(request.body)
        if hook_input.hook_event_name == "AfterTool" and _is_in_subagent(hook_input):
            return None
        observation = self.observe_main(request, hook_input, at, late)
        if observation is None:
            return None
        if hook_input.hook_event_name == "AfterTool":
            return msgspec.structs.replace(observation, added_bytes=_result_bytes(hook_input))
        if hook_input.hook_event_name != "AfterModel":
            return observation
        usage, model = _call_usage(hook_input), hook_input.llm_request.model
        return usage and msgspec.structs.replace(
            observation, usage=usage, model=model, usage_source="hook"
        )

    def may_read_files(self, request: HookRequest) -> bool:
        return True  # of the chats of subagents


def _call_usage(hook_input: GeminiInput) -> Usage | None:
    """The usage of a call of the session's own model, if this is the last part of its answer.

    Hooks do not report the cached tokens and the thoughts, but the total includes the thoughts.
    """
    response, messages = hook_input.llm_response, hook_input.llm_request.messages
    if not (messages and bytes(messages[0].content).startswith(SESSION_OPENING)):
        return None
    if not any(candidate.finish_reason for candidate in response.candidates):
        return None
    usage = generate_usage(response)
    total = (response.usage_metadata or {}).get("totalTokenCount")
    if usage is None or total is None or total <= usage.held:
        return usage
    return msgspec.structs.replace(usage, output=total - usage.sent)


def _result_bytes(hook_input: GeminiInput) -> int:
    """Return the size of a tool's result, as far as the model gets it."""
    with suppress(*MALFORMED):
        response = _tool_response.decode(hook_input.tool_response)
        return min(MAX_RESULT_BYTES, text_size(response.llm_content))
    return 0


def _is_in_subagent(hook_input: GeminiInput) -> bool:
    """Whether a subagent's chat was written after the session's own: then it runs the tool.

    If that is wrong, the reply waits for the next tool.
    """
    if hook_input.transcript_path is None or hook_input.tool_name == SUBAGENT_TOOL:
        return False
    folder = os.path.join(os.path.dirname(hook_input.transcript_path), hook_input.session_id)
    try:
        own = os.stat(hook_input.transcript_path).st_mtime_ns
        with os.scandir(folder) as entries:
            return any(entry.stat().st_mtime_ns > own for entry in entries)
    except OSError:
        return False


HOOKS = GeminiHooks(
    events={
        "BeforeAgent": "prompt",
        "AfterModel": "status",
        "AfterTool": "tool",
        "AfterAgent": "stopped",
        "SessionEnd": "ended",
    },
    starts={"clear": "cleared"},
)


def _named_hook(command: HookCommand) -> Hook:
    timeout = HOOK_TIMEOUT_S * 1000
    return Hook(type="command", name=HOOK_NAME, command=command.shell, timeout=timeout)


def _mcp_place(places: Places, scope: Scope, cwd: Path) -> McpPlace:
    file = (root(places) if scope == "user" else cwd / ".gemini") / "settings.json"
    return McpPlace(file, ("mcpServers", HOOK_NAME), Dialect(comments=True))


INSTALL_SPEC = InstallSpec(
    agent="gemini",
    user_file=lambda places: root(places) / "settings.json",
    project_file=".gemini/settings.json",
    dialect=Dialect(comments=True),
    events=("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd"),
    hook=_named_hook,
    disable_setting=DisableSetting(
        ("hooksConfig", "enabled"), off=False, names_path=("hooksConfig", "disabled")
    ),
    next_step="Open sessions need a restart.",
    mcp=McpSpec(_mcp_place),
)


def compaction_setting(
    places: Places, project: str | None, known: ResolveContext
) -> CompactionSetting:
    """Its threshold as a fraction of the window, of every model."""
    return CompactionSetting(
        field="fraction",
        key=("model", "compressionThreshold"),
        file=(Path(project, ".gemini") if project else root(places)) / "settings.json",
        is_shared=project is not None,
        dialect=Dialect(comments=True),
        note="the same share of every model's window; restart Gemini CLI",
    )
