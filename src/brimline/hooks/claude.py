"""Claude Code's hooks and its status line."""

import os

import msgspec

from brimline.hooks.dialect import EVENTS, STARTS, Dialect, decoded
from brimline.hooks.protocol import Request
from brimline.hooks.statusline import Told, read
from brimline.hooks.wire import CurrentUsage, HookInput
from brimline.observations import Observation, ObservationKind, Reply
from brimline.transcripts.source import Transcript
from brimline.usage import Usage

DIALECT = Dialect({**EVENTS, "PostToolBatch": "tool", "StopFailure": "wrote"}, STARTS)
"""SessionStart(compact) comes before PostCompact, whose answer the model never sees."""

SUBAGENTS: dict[str, ObservationKind] = {
    "PostToolUse": "tool",
    "PostToolBatch": "tool",
    "SubagentStop": "ended",
}
"""What is heard of a subagent, in a thread of its own."""

PROJECT = "CLAUDE_PROJECT_DIR"
"""Where the session began, as a hook's environment tells; `cwd` goes with the agent."""


class Claude:
    """Claude Code's hooks."""

    def heard(self, request: Request, at: float, late: bool = False) -> Observation | None:
        """What a hook tells, of the main thread or of a subagent."""
        told = _told(request)
        if told.agent_id is None:
            return DIALECT.main(request, told, at, late)
        what, file = SUBAGENTS.get(told.hook_event_name), _file(told, told.agent_id)
        if what is None or file is None:
            return None
        heard = DIALECT.as_heard(what, request, told, at, late)
        return msgspec.structs.replace(heard, thread=file.thread, file=file, model=None)

    def answer(self, request: Request, reply: Reply) -> bytes:
        """A reply: Stop goes on, the others add to what is read."""
        return DIALECT.answer(request, reply)


def _told(request: Request) -> HookInput:
    """A hook's input, with the session's project for its folder where that is known."""
    told, project = decoded(request), request.env.get(PROJECT)
    if not project or project == told.cwd:
        return told
    return msgspec.structs.replace(told, cwd=project)


def _file(told: HookInput, agent: str) -> Transcript | None:
    """A subagent's transcript; None where there is none, as of what writes a summary."""
    own = (told.transcript_path or "").removesuffix(".jsonl")
    path = told.agent_transcript_path or f"{own}/subagents/agent-{agent}.jsonl"
    try:
        status = os.stat(path)
    except OSError:
        return None
    return Transcript("claude", path, status.st_mtime, status.st_size, told.session_id, agent)


HOOKS = Claude()


def heard_status(request: Request, at: float, late: bool = False) -> tuple[Observation, Told]:
    """What a status line tells; raises msgspec.DecodeError where it is none."""
    taken = read(request.body)
    told = taken.input
    usage = told.context_window.current_usage
    heard = Observation(
        id=request.id,
        agent=request.agent,
        session=told.session_id,
        what="status",
        at=at,
        transcript=told.transcript_path,
        project=taken.project,
        model=told.model.id,
        version=told.version,
        parent=request.env.get("BRIMLINE_PARENT"),
        usage=None if usage is None else _usage(usage),
        window=told.context_window.context_window_size,
        late=late,
    )
    return heard, taken


def _usage(told: CurrentUsage) -> Usage:
    return Usage(
        told.input_tokens,
        told.cache_read_input_tokens,
        told.cache_creation_input_tokens,
        told.output_tokens,
    )
