"""Claude Code's hooks and its status line: what they report, and how they are installed.

settings.json is plain JSON: Claude Code ignores all of it if it has a comment. `args`, which avoids
a shell, exists since 2.1.139. So does PostToolBatch, which replaces PostToolUse: its answer reaches
the same request, and the agent waits for one process per step, however many tools it used.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from brimline.agents.claude import (
    ENTRYPOINT_VARIABLE,
    MANAGER_VARIABLE,
    PROJECT_VARIABLE,
)
from brimline.agents.claude.paths import LOCAL_SETTINGS, STATE_FILE, roots
from brimline.agents.compaction_setting import CompactionSetting
from brimline.agents.hook_adapter import (
    EVENTS,
    ContextWindow,
    HookAdapter,
    HookInput,
    HookRequest,
    StatusInput,
    StatusLineReport,
    TokenCount,
    text_size,
)
from brimline.agents.hook_command import HOOK_NAME, HOOK_TIMEOUT_S, Hook, HookCommand
from brimline.agents.install_spec import (
    DisableSetting,
    InstallSpec,
    McpPlace,
    McpSpec,
    Scope,
    stdio_server,
)
from brimline.agents.observations import Observation, Reply
from brimline.agents.transcripts.source import MALFORMED, Places
from brimline.context.client_report import PromptCache, Quotas
from brimline.context.window import LONG_CONTEXT_SUFFIX, ModelSwitch, ResolveContext
from brimline.errors import MalformedJson, UnexpectedJson
from brimline.files.foreign_json import ABSENT, JsonDecoder, decode_lenient
from brimline.files.jsonc import Dialect

AUTO_COMPACT_WINDOWS = (100_000, 1_000_000)  # that Claude Code takes

STOP_CONTEXT_SINCE = (2, 1, 325)  # the first known version that takes context from a Stop hook


class _BatchCall(msgspec.Struct, frozen=True):
    tool_response: msgspec.Raw = ABSENT


class ClaudeInput(HookInput, frozen=True):
    """What Claude Code writes. Each response of a batch is the content that the model gets.

    That of PostToolUse is the tool's own object: of a change it has the whole file (2.1.325).
    """

    tool_calls: msgspec.Raw = ABSENT
    to_model: str | None = None
    context_tokens: TokenCount | None = None


class _SwitchQuestion(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to PreModelSwitch that has the user confirm the switch, or go back."""

    hook_event_name: str
    permission_decision_reason: str
    permission_decision: str = "ask"


class _SwitchOutput(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    hook_specific_output: _SwitchQuestion | None = None
    system_message: str | None = None


_hook_input = JsonDecoder(ClaudeInput)
_batch = JsonDecoder(tuple[_BatchCall, ...])


class ClaudeHooks(HookAdapter):
    """The project is the folder in which the session began; a hook's `cwd` may be another one."""

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        hook_input = _hook_input.decode(request.body)
        if project := request.env.get(PROJECT_VARIABLE):
            hook_input = msgspec.structs.replace(hook_input, cwd=project)
        if hook_input.agent_id is None:
            observation = self.observe_main(request, hook_input, at, late)
            return observation and msgspec.structs.replace(
                observation,
                switch=_find_switch(hook_input),
                is_interactive=_is_interactive(request),
                manager_id=request.env.get(MANAGER_VARIABLE),
                added_bytes=_added_bytes(hook_input),
            )
        own = (hook_input.transcript_path or "").removesuffix(".jsonl")
        path = f"{own}/subagents/agent-{hook_input.agent_id}.jsonl"
        observation = self.observe_subagent(request, hook_input, path, at, late)
        return observation and msgspec.structs.replace(
            observation, added_bytes=_added_bytes(hook_input)
        )

    def encode_reply(self, hook_event: str, reply: Reply) -> bytes:
        """Continue a turn by context if the client takes that, else by a decision.

        The user sees "Stop hook says" (2.1.325: "Stop hook feedback"), and no error. 2.1.139
        ignores context. It shows one line of a question about a model, and refuses the model if
        nobody can be asked (2.1.326).
        """
        if (warning := reply.switch_warning) is not None:
            if reply.asks_user:
                output = _SwitchOutput(_SwitchQuestion(hook_event, warning.text))
            else:
                output = _SwitchOutput(system_message=warning.text)
            return msgspec.json.encode(output) + b"\n"
        if reply.stop_feedback is not None and _takes_stop_context(reply.client_version):
            reply = Reply(context=reply.stop_feedback)
        return super().encode_reply(hook_event, reply)

    def may_read_files(self, request: HookRequest) -> bool:
        """Only a subagent's hook needs its transcript's size."""
        return b'"agent_id"' in request.body


def _takes_stop_context(version: str | None) -> bool:
    numbers = tuple(int(part) for part in re.findall(r"\d+", version or ""))
    return numbers >= STOP_CONTEXT_SINCE


def _find_switch(hook_input: ClaudeInput) -> ModelSwitch | None:
    if hook_input.to_model is None or hook_input.context_tokens is None:
        return None
    return ModelSwitch(hook_input.to_model, hook_input.context_tokens)


def _added_bytes(hook_input: ClaudeInput) -> int:
    """Return the size of a prompt, or of the results of a batch of tools."""
    with suppress(*MALFORMED):
        return sum(text_size(call.tool_response) for call in _batch.decode(hook_input.tool_calls))
    return text_size(hook_input.prompt)


def _is_interactive(request: HookRequest) -> bool | None:
    """Return whether a user is at the client; None if unknown, as of a hook over HTTP.

    2.1.325: `cli` if it is, `sdk-cli` with `-p`, also below another session.
    """
    entrypoint = request.env.get(ENTRYPOINT_VARIABLE)
    return None if entrypoint is None else entrypoint == "cli"


def observe_status_line(
    request: HookRequest, at: float, late: bool = False
) -> tuple[Observation, StatusLineReport]:
    """Return what a status line reports; raises MalformedJson if it names no session."""
    report = read_status_line(request.body)
    status = report.input
    usage = status.context_window.current_usage
    observation = Observation(
        id=request.id,
        agent=request.agent,
        session=status.session_id,
        kind="status",
        at=at,
        transcript=status.transcript_path,
        project=report.project,
        model=status.model.id,
        version=status.version,
        parent=request.env.get("BRIMLINE_PARENT"),
        usage=None if usage is None else usage.usage,
        window=status.context_window.context_window_size,
        is_interactive=_is_interactive(request),
        manager_id=request.env.get(MANAGER_VARIABLE),
        is_late=late,
        quotas=_quotas(status, at),
        prompt_cache=_prompt_cache(status, at),
    )
    return observation, report


def _quotas(status: StatusInput, at: float) -> Quotas | None:
    """Return the quotas; a client without a subscription reports none."""
    limits = status.rate_limits
    return msgspec.structs.replace(limits, at=at) if limits.known else None


def _prompt_cache(status: StatusInput, at: float) -> PromptCache | None:
    """Return the state of the cache; before the first call, and by 2.1.197, there is none."""
    if status.prompt_cache == PromptCache():
        return None
    return msgspec.structs.replace(status.prompt_cache, at=at, origin="reported")


# The client's percentage is rounded; further from its own tokens it is of something else.
MAX_DEVIATION_PERCENT = 2.0

_status_input = JsonDecoder(StatusInput)
_T = TypeVar("_T", bound=msgspec.Struct)


def read_status_line(body: bytes) -> StatusLineReport:
    """Read a status line's input as far as it is valid; raises MalformedJson without a session.

    The line must be drawn whatever the client writes: clients reported an epoch time as a
    percentage, 0 % for a context in use, and a window of 200,000 that held 300,000. An invalid
    field is left out, so that Brimline uses what it knows from elsewhere, and is named.
    """
    invalid = dict[str, Any]()
    try:
        status = _status_input.decode(body)
    except MalformedJson:
        fields = _decode_object(body)
        status = _valid_fields(StatusInput, fields, invalid)
        if not fields.get("session_id") or "session_id" in invalid:
            raise UnexpectedJson("expected a status line's input with a `session_id`") from None
    reason = _describe_invalid(invalid) or _disagreement(status.context_window)
    project = status.workspace.project_dir or status.cwd
    return StatusLineReport(status, reason, project, _was_called(status))


def _was_called(status: StatusInput) -> bool:
    """Before the first call there is no usage, no total and no cost."""
    context = status.context_window
    if context.current_usage is not None:
        return True
    totals = (
        context.total_input_tokens,
        context.total_output_tokens,
        status.cost.total_cost_usd,
    )
    return any(total is not None and total > 0 for total in totals)


def _decode_object(body: bytes) -> dict[str, Any]:
    """Decode a JSON object, also one with NaN in it."""
    value = decode_lenient(body)
    if not isinstance(value, dict):
        raise UnexpectedJson(f"expected an object: got {type(value).__name__}")
    return cast("dict[str, Any]", value)


def _valid_fields(kind: type[_T], values: dict[str, Any], invalid: dict[str, Any]) -> _T:
    """Return a struct of the valid fields; the invalid ones are added to `invalid`."""
    valid: dict[str, Any] = {"session_id": ""} if kind is StatusInput else {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in values:
            continue
        value = values[field.encode_name]
        kind_of_field: object = field.type
        if (
            isinstance(value, dict)
            and isinstance(kind_of_field, type)
            and issubclass(kind_of_field, msgspec.Struct)
        ):
            valid[field.name] = _valid_fields(kind_of_field, cast("dict[str, Any]", value), invalid)
            continue
        try:
            converted = msgspec.convert(value, field.type)
            if isinstance(converted, str):
                converted.encode()  # half a character is no text that could be stored or shown
            valid[field.name] = converted
        except (msgspec.ValidationError, ValueError, OverflowError):
            invalid[field.name] = value
    return kind(**valid)


def _describe_invalid(invalid: dict[str, Any]) -> str | None:
    """The worst of the invalid fields, in words."""
    if "context_window" in invalid or "current_usage" in invalid:
        return "client's usage is invalid"
    if "context_window_size" in invalid:
        return "client's window is invalid"
    if "used_percentage" not in invalid:
        return None
    percentage = invalid["used_percentage"]
    if isinstance(percentage, bool) or not isinstance(percentage, int | float):
        return "client's percentage is invalid"
    return f"client says {str(percentage)[:16]}%"


def _disagreement(context: ContextWindow) -> str | None:
    """The client's percentage, if it is not that of its own tokens."""
    size, reported = context.context_window_size, context.used_percentage
    sent = context.current_usage.usage.sent if context.current_usage else 0
    if not sent or size is None or reported is None:
        return None
    computed = min(100.0, 100 * sent / size)
    if abs(reported - computed) > MAX_DEVIATION_PERCENT or (not reported and computed >= 1):
        return f"client says {reported:g}%"
    return None


# SessionStart(compact) comes before PostCompact, whose answer the model never sees. StopFailure
# comes instead of Stop if the API failed (2.1.325).
HOOKS = ClaudeHooks(
    {
        **EVENTS,
        "PostToolBatch": "tool",
        "StopFailure": "wrote",
        "PreModelSwitch": "switching",
    }
)
STATUS_LINE = observe_status_line

INSTALLED_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PostToolBatch",
    "Stop",
    "StopFailure",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "PreModelSwitch",
    "SessionEnd",
)
# An older client warns of an event that it does not know, at each start.
NEWER_EVENTS = {"PreModelSwitch": (2, 1, 251)}
# A line that was drawn while the daemon started or did not answer in time is drawn again. 2.1.325
# takes seconds, 1 or more.
REFRESH_INTERVAL_S = 10

PLUGIN_NAME = "brimline@brimline"  # of the marketplace in plugin/

# 2.1.325 does not run an HTTP hook for SessionStart. One that fails could prevent a model's switch.
COMMAND_ONLY_EVENTS = ("SessionStart", "PreModelSwitch")


def _shell_free_hook(command: HookCommand) -> Hook:
    program, *words = command.words
    return Hook(type="command", command=program, args=words, timeout=HOOK_TIMEOUT_S)


def _mcp_place(places: Places, scope: Scope, cwd: Path) -> McpPlace:
    """The list in .claude.json: a project's own list there is this user's alone."""
    above = roots(places)[0] if "CLAUDE_CONFIG_DIR" in places.env else places.home
    project = () if scope == "user" else ("projects", str(cwd))
    return McpPlace(above / STATE_FILE, (*project, "mcpServers", HOOK_NAME))


INSTALL_SPEC = InstallSpec(
    agent="claude",
    user_file=lambda places: roots(places)[0] / "settings.json",
    project_file=".claude/settings.json",
    local_file=".claude/settings.local.json",
    dialect=Dialect(byte_order_mark=True),
    events=INSTALLED_EVENTS,
    newer_events=NEWER_EVENTS,
    hook=_shell_free_hook,
    disable_setting=DisableSetting(("disableAllHooks",), off=True),
    http_events=[event for event in INSTALLED_EVENTS if event not in COMMAND_ONLY_EVENTS],
    has_status_line=True,
    refresh_interval_s=REFRESH_INTERVAL_S,
    min_version=(2, 1, 139),
    next_step="Open sessions may need a restart.",
    plugin=("enabledPlugins", PLUGIN_NAME),
    mcp=McpSpec(_mcp_place, lambda command: {"type": "stdio", **stdio_server(command)}),
)


def compaction_setting(
    places: Places, project: str | None, known: ResolveContext
) -> CompactionSetting:
    """The auto-compact window of a model, which `/autocompact` writes too.

    Claude Code 2.1.325 compacts 33,000 tokens below it, and takes no less than 100,000 for it.
    """
    model = (known.model or "").removesuffix(LONG_CONTEXT_SUFFIX)
    user_file, own = roots(places)[0] / "settings.json", Path(".claude", LOCAL_SETTINGS)
    return CompactionSetting(
        field="auto_compact_windows",
        key=("modelSettings", model, "autoCompactWindow"),
        model=model,
        file=Path(project, own) if project else user_file,
        bounds=AUTO_COMPACT_WINDOWS,
        note=f"for {model} alone",
    )
