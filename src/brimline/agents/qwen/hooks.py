"""Qwen Code's hooks: as Claude Code's, with a few events of its own.

UserPromptSubmit comes again before each call that follows the results of tools, with an empty
prompt (0.24.4): that is no prompt. settings.json may have comments;
commands are run by a shell.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.agents.compaction_setting import CompactionSetting
from brimline.agents.genai_content import Function
from brimline.agents.hook_adapter import EVENTS, HookAdapter, HookInput, HookRequest, text_size
from brimline.agents.hook_command import HOOK_NAME
from brimline.agents.install_spec import (
    START_EVENT,
    DisableSetting,
    InstallSpec,
    McpPlace,
    McpSpec,
    Scope,
)
from brimline.agents.observations import Observation
from brimline.agents.qwen.paths import root, subagent_path
from brimline.agents.transcripts.source import MALFORMED, Places
from brimline.context.window import ResolveContext
from brimline.files.foreign_json import ABSENT, JsonDecoder
from brimline.files.jsonc import Dialect

EMPTY_PROMPT = b'""'


class _ResponsePart(msgspec.Struct, frozen=True, rename="camel"):
    function_response: Function = Function()


class _ToolResponse(msgspec.Struct, frozen=True):
    response_parts: tuple[_ResponsePart, ...] = ()


class _BatchedCall(msgspec.Struct, frozen=True):
    tool_response: _ToolResponse = _ToolResponse()


class QwenInput(HookInput, frozen=True):
    """What Qwen Code writes; a batch has the results of its tools as the model gets them."""

    tool_calls: msgspec.Raw = ABSENT


_hook_input = JsonDecoder(QwenInput)
_batch = JsonDecoder(tuple[_BatchedCall, ...])


class QwenHooks(HookAdapter):
    """Prompts that nobody wrote are not observed, nor is the start after a compression.

    The client adds an answer to the latter from the second request on, and does not record it, so
    that a resumed session has lost it. The next tool's answer is in that request too, and recorded.
    """

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        hook_input = _hook_input.decode(request.body)
        is_compacted = hook_input.hook_event_name == START_EVENT and hook_input.source == "compact"
        if is_compacted or bytes(hook_input.prompt) == EMPTY_PROMPT:
            return None
        if hook_input.agent_id is None:
            observation = self.observe_main(request, hook_input, at, late)
        else:
            path = subagent_path(hook_input.transcript_path or "", hook_input.agent_id)
            observation = self.observe_subagent(request, hook_input, path, at, late)
        return observation and msgspec.structs.replace(
            observation, added_bytes=_added_bytes(hook_input)
        )

    def may_read_files(self, request: HookRequest) -> bool:
        """Only a subagent's hook needs its transcript's size."""
        return b'"agent_id"' in request.body


def _added_bytes(hook_input: QwenInput) -> int:
    """Return the size of a prompt, or of the results of a batch of tools."""
    with suppress(*MALFORMED):
        calls = _batch.decode(hook_input.tool_calls)
        parts = (part for call in calls for part in call.tool_response.response_parts)
        texts = (part.function_response.text for part in parts)
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return text_size(hook_input.prompt)


HOOKS = QwenHooks({**EVENTS, "PostToolBatch": "tool", "StopFailure": "wrote"})


def _mcp_place(places: Places, scope: Scope, cwd: Path) -> McpPlace:
    file = (root(places) if scope == "user" else cwd / ".qwen") / "settings.json"
    return McpPlace(file, ("mcpServers", HOOK_NAME), Dialect(comments=True))


INSTALL_SPEC = InstallSpec(
    agent="qwen",
    user_file=lambda places: root(places) / "settings.json",
    project_file=".qwen/settings.json",
    dialect=Dialect(comments=True),
    events=(
        "SessionStart",
        "UserPromptSubmit",
        "PostToolBatch",
        "Stop",
        "StopFailure",
        "SubagentStop",
        "PreCompact",
        "PostCompact",
        "SessionEnd",
    ),
    disable_setting=DisableSetting(("disableAllHooks",), off=True),
    next_step="Open sessions need a restart.",
    mcp=McpSpec(_mcp_place),
)


def compaction_setting(
    places: Places, project: str | None, known: ResolveContext
) -> CompactionSetting:
    """Its threshold as a fraction of the window, of every model; it keeps 33,000 tokens free."""
    return CompactionSetting(
        field="fraction",
        key=("context", "autoCompactThreshold"),
        file=(Path(project, ".qwen") if project else root(places)) / "settings.json",
        is_shared=project is not None,
        dialect=Dialect(comments=True),
        note="the same share of every model's window; restart Qwen Code",
    )
