"""Claude Code's hooks and its status line."""

import os

import msgspec

from brimline.agents.claude.capabilities import PROJECT_VARIABLE
from brimline.agents.claude.status_line import read_status_line
from brimline.agents.hook_adapter import EVENTS, STARTS, HookRequest, StandardHooks, decode_input
from brimline.agents.hook_payloads import CurrentUsage, HookInput, StatusLineReport
from brimline.observations import Observation, ObservationKind, Reply
from brimline.transcripts.source import Transcript
from brimline.usage import Usage

# SessionStart(compact) comes before PostCompact, whose answer the model never sees.
STANDARD_HOOKS = StandardHooks({**EVENTS, "PostToolBatch": "tool", "StopFailure": "wrote"}, STARTS)

# Events of a subagent, which has its own thread.
SUBAGENT_EVENTS: dict[str, ObservationKind] = {
    "PostToolUse": "tool",
    "PostToolBatch": "tool",
    "SubagentStop": "ended",
}


class ClaudeHooks:
    """Claude Code's hooks."""

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        hook_input = _decode_input(request)
        if hook_input.agent_id is None:
            return STANDARD_HOOKS.observe_main(request, hook_input, at, late)
        what, file = (
            SUBAGENT_EVENTS.get(hook_input.hook_event_name),
            _subagent_transcript(hook_input, hook_input.agent_id),
        )
        if what is None or file is None:
            return None
        observation = STANDARD_HOOKS.observation(what, request, hook_input, at, late)
        return msgspec.structs.replace(observation, thread=file.thread, file=file, model=None)

    def may_read_files(self, request: HookRequest) -> bool:
        """Only a subagent's hook needs its transcript's size."""
        return b'"agent_id"' in request.body

    def encode_reply(self, request: HookRequest, reply: Reply) -> bytes:
        """Encode a reply as `StandardHooks` does."""
        return STANDARD_HOOKS.encode_reply(request, reply)


def _decode_input(request: HookRequest) -> HookInput:
    """Decode a hook's input; its `cwd` becomes the session's project, if that is known."""
    hook_input, project = decode_input(request), request.env.get(PROJECT_VARIABLE)
    if not project or project == hook_input.cwd:
        return hook_input
    return msgspec.structs.replace(hook_input, cwd=project)


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
    """What a status line tells; raises msgspec.DecodeError where it is none."""
    taken = read_status_line(request.body)
    hook_input = taken.input
    usage = hook_input.context_window.current_usage
    observation = Observation(
        id=request.id,
        agent=request.agent,
        session=hook_input.session_id,
        kind="status",
        at=at,
        transcript=hook_input.transcript_path,
        project=taken.project,
        model=hook_input.model.id,
        version=hook_input.version,
        parent=request.env.get("BRIMLINE_PARENT"),
        usage=None if usage is None else _usage(usage),
        window=hook_input.context_window.context_window_size,
        is_late=late,
    )
    return observation, taken


def _usage(hook_input: CurrentUsage) -> Usage:
    return Usage(
        hook_input.input_tokens,
        hook_input.cache_read_input_tokens,
        hook_input.cache_creation_input_tokens,
        hook_input.output_tokens,
    )


HOOKS = ClaudeHooks()
STATUS_LINE = observe_status_line
