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

STANDARD_HOOKS = StandardHooks({**EVENTS, "PostToolBatch": "tool", "StopFailure": "wrote"}, STARTS)
"""SessionStart(compact) comes before PostCompact, whose answer the model never sees."""

SUBAGENT_EVENTS: dict[str, ObservationKind] = {
    "PostToolUse": "tool",
    "PostToolBatch": "tool",
    "SubagentStop": "ended",
}
"""What is heard of a subagent, in a thread of its own."""


class ClaudeHooks:
    """Claude Code's hooks."""

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        """What a hook tells, of the main thread or of a subagent."""
        told = _decode_input(request)
        if told.agent_id is None:
            return STANDARD_HOOKS.observe_main(request, told, at, late)
        what, file = (
            SUBAGENT_EVENTS.get(told.hook_event_name),
            _subagent_transcript(told, told.agent_id),
        )
        if what is None or file is None:
            return None
        heard = STANDARD_HOOKS.observation(what, request, told, at, late)
        return msgspec.structs.replace(heard, thread=file.thread, file=file, model=None)

    def may_read_files(self, request: HookRequest) -> bool:
        """Only a subagent's hook needs its transcript's size."""
        return b'"agent_id"' in request.body

    def encode_reply(self, request: HookRequest, reply: Reply) -> bytes:
        """A reply: Stop goes on, the others add to what is read."""
        return STANDARD_HOOKS.encode_reply(request, reply)


def _decode_input(request: HookRequest) -> HookInput:
    """A hook's input, with the session's project for its folder where that is known."""
    told, project = decode_input(request), request.env.get(PROJECT_VARIABLE)
    if not project or project == told.cwd:
        return told
    return msgspec.structs.replace(told, cwd=project)


def _subagent_transcript(told: HookInput, agent: str) -> Transcript | None:
    """A subagent's transcript; None where there is none, as of what writes a summary."""
    own = (told.transcript_path or "").removesuffix(".jsonl")
    path = told.agent_transcript_path or f"{own}/subagents/agent-{agent}.jsonl"
    try:
        status = os.stat(path)
    except OSError:
        return None
    return Transcript("claude", path, status.st_mtime, status.st_size, told.session_id, agent)


def observe_status_line(
    request: HookRequest, at: float, late: bool = False
) -> tuple[Observation, StatusLineReport]:
    """What a status line tells; raises msgspec.DecodeError where it is none."""
    taken = read_status_line(request.body)
    told = taken.input
    usage = told.context_window.current_usage
    heard = Observation(
        id=request.id,
        agent=request.agent,
        session=told.session_id,
        kind="status",
        at=at,
        transcript=told.transcript_path,
        project=taken.project,
        model=told.model.id,
        version=told.version,
        parent=request.env.get("BRIMLINE_PARENT"),
        usage=None if usage is None else _usage(usage),
        window=told.context_window.context_window_size,
        is_late=late,
    )
    return heard, taken


def _usage(told: CurrentUsage) -> Usage:
    return Usage(
        told.input_tokens,
        told.cache_read_input_tokens,
        told.cache_creation_input_tokens,
        told.output_tokens,
    )


HOOKS = ClaudeHooks()
STATUS_LINE = observe_status_line
