"""Claude Code's hooks and its status line: what they report, and how they are installed.

settings.json is plain JSON: Claude Code ignores all of it if it has a comment. `args`, which avoids
a shell, exists since 2.1.139. So does PostToolBatch, which replaces PostToolUse: its answer reaches
the same request, and the agent waits for one process per step, however many tools it used.
"""

import os
import re
from contextlib import suppress

import msgspec

from brimline.agents.claude.capabilities import (
    ENTRYPOINT_VARIABLE,
    MANAGER_VARIABLE,
    PROJECT_VARIABLE,
)
from brimline.agents.claude.paths import roots
from brimline.agents.claude.status_line import read_status_line
from brimline.agents.hook_adapter import EVENTS, HookAdapter, HookRequest
from brimline.agents.hook_command import HOOK_TIMEOUT_S, Hook, HookCommand
from brimline.agents.hook_payloads import (
    NO_VALUE,
    HookInput,
    StatusInput,
    StatusLineReport,
    text_size,
)
from brimline.agents.install_spec import DisableSetting, InstallSpec
from brimline.agents.observations import Observation, ObservationKind, Reply
from brimline.agents.transcripts.source import MALFORMED, Transcript
from brimline.context.client_report import PromptCache, Quotas
from brimline.files.foreign_json import JsonDecoder
from brimline.files.jsonc import Dialect

# Events of a subagent, which has its own thread.
SUBAGENT_EVENTS: dict[str, ObservationKind] = {
    "PostToolUse": "tool",
    "PostToolBatch": "tool",
    "SubagentStop": "ended",
}

STOP_CONTEXT_SINCE = (2, 1, 325)  # the first known version that takes context from a Stop hook


class _BatchCall(msgspec.Struct, frozen=True):
    tool_response: msgspec.Raw = NO_VALUE


class ClaudeInput(HookInput, frozen=True):
    """What Claude Code writes. Each response of a batch is the content that the model gets.

    That of PostToolUse is the tool's own object: of a change it has the whole file (2.1.325).
    """

    tool_calls: msgspec.Raw = NO_VALUE


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
                is_interactive=_is_interactive(request),
                manager_id=request.env.get(MANAGER_VARIABLE),
                added_bytes=_added_bytes(hook_input),
            )
        kind = SUBAGENT_EVENTS.get(hook_input.hook_event_name)
        file = _subagent_transcript(hook_input, hook_input.agent_id)
        if kind is None or file is None:
            return None
        observation = self.observation(kind, request, hook_input, at, late)
        return msgspec.structs.replace(
            observation,
            thread=file.thread,
            file=file,
            model=None,
            added_bytes=_added_bytes(hook_input),
        )

    def encode_reply(self, hook_event: str, reply: Reply) -> bytes:
        """Continue a turn by context if the client takes that, else by a decision.

        The user sees "Stop hook feedback" instead of "Stop hook error". 2.1.139 ignores context.
        """
        if reply.stop_feedback is not None and _takes_stop_context(reply.client_version):
            reply = Reply(context=reply.stop_feedback)
        return super().encode_reply(hook_event, reply)

    def may_read_files(self, request: HookRequest) -> bool:
        """Only a subagent's hook needs its transcript's size."""
        return b'"agent_id"' in request.body


def _takes_stop_context(version: str | None) -> bool:
    numbers = tuple(int(part) for part in re.findall(r"\d+", version or ""))
    return numbers >= STOP_CONTEXT_SINCE


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


def _subagent_transcript(hook_input: HookInput, agent: str) -> Transcript | None:
    """Return a subagent's transcript; the subagent that summarises has none."""
    own = (hook_input.transcript_path or "").removesuffix(".jsonl")
    path = hook_input.agent_transcript_path or f"{own}/subagents/agent-{agent}.jsonl"
    try:
        status = os.stat(path)
    except OSError:
        return None
    return Transcript("claude", path, status.st_mtime, status.st_size, hook_input.session_id, agent)


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


# SessionStart(compact) comes before PostCompact, whose answer the model never sees.
HOOKS = ClaudeHooks({**EVENTS, "PostToolBatch": "tool", "StopFailure": "wrote"})
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
    "SessionEnd",
)
# A line that was drawn while the daemon started or did not answer in time is drawn again.
REFRESH_INTERVAL_S = 10

COMMAND_ONLY_EVENTS = ("SessionStart",)  # events for which the client runs no HTTP hook


def _shell_free_hook(command: HookCommand) -> Hook:
    program, *words = command.words
    return Hook(type="command", command=program, args=words, timeout=HOOK_TIMEOUT_S)


INSTALL_SPEC = InstallSpec(
    agent="claude",
    user_file=lambda places: roots(places)[0] / "settings.json",
    project_file=".claude/settings.json",
    local_file=".claude/settings.local.json",
    dialect=Dialect(byte_order_mark=True),
    events=INSTALLED_EVENTS,
    hook=_shell_free_hook,
    disable_setting=DisableSetting(("disableAllHooks",), off=True),
    http_events=[event for event in INSTALLED_EVENTS if event not in COMMAND_ONLY_EVENTS],
    has_status_line=True,
    refresh_interval_s=REFRESH_INTERVAL_S,
    min_version=(2, 1, 139),
    next_step="Open sessions may need a restart.",
)
