"""Claude Code's hooks and status line, and Codex's hooks, which are alike: heard and answered."""

import msgspec

from brimline.events import Trigger
from brimline.hooks.frame import Request
from brimline.hooks.wire import CurrentUsage, HookInput, HookOutput, Specific, StatusInput
from brimline.monitor.heard import Happening, Heard, Reply
from brimline.usage import Usage

_hook = msgspec.json.Decoder(HookInput)
_status = msgspec.json.Decoder(StatusInput)

EVENTS: dict[str, Happening] = {
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "PostToolBatch": "tool",
    "Stop": "stopped",
    "StopFailure": "ended",
    "PreCompact": "compacting",
    "PostCompact": "compacted",
    "SessionEnd": "ended",
}
STARTS: dict[str, Happening] = {"compact": "compacted", "clear": "cleared"}
TRIGGERS: dict[str, Trigger] = {"auto": "auto", "manual": "manual"}


def heard_hook(request: Request, at: float, late: bool = False) -> Heard | None:
    """What a hook tells; None for an event that tells us nothing, and inside a subagent.

    Raises msgspec.DecodeError where it is no hook's input.
    """
    told = _hook.decode(request.body)
    what = _happening(told)
    if what is None or told.agent_id is not None:
        return None
    return Heard(
        id=request.id,
        agent=request.agent,
        session=told.session_id,
        what=what,
        at=at,
        transcript=told.transcript_path,
        project=told.cwd,
        model=told.model,
        parent=request.env.get("BRIMLINE_PARENT"),
        trigger=TRIGGERS.get(told.trigger or ""),
        going_on=told.stop_hook_active,
        late=late,
    )


def _happening(told: HookInput) -> Happening | None:
    if told.hook_event_name == "SessionStart":
        return STARTS.get(told.source or "", "started")
    return EVENTS.get(told.hook_event_name)


def heard_status(request: Request, at: float, late: bool = False) -> tuple[Heard, StatusInput]:
    """What a status line tells; raises msgspec.DecodeError or InvalidUsage where it is none."""
    told = _status.decode(request.body)
    usage = told.context_window.current_usage
    heard = Heard(
        id=request.id,
        agent=request.agent,
        session=told.session_id,
        what="status",
        at=at,
        transcript=told.transcript_path,
        project=told.cwd,
        model=told.model.id,
        version=told.version,
        parent=request.env.get("BRIMLINE_PARENT"),
        usage=None if usage is None else _usage(usage),
        window=told.context_window.context_window_size,
        late=late,
    )
    return heard, told


def _usage(told: CurrentUsage) -> Usage:
    return Usage(
        told.input_tokens,
        told.cache_read_input_tokens,
        told.cache_creation_input_tokens,
        told.output_tokens,
    )


def answer(request: Request, reply: Reply) -> bytes:
    """A reply as the client takes it; nothing where there is nothing to say."""
    if reply.go_on is not None:
        return _written(HookOutput(decision="block", reason=reply.go_on))
    if reply.context is None:
        return b""
    event = _hook.decode(request.body).hook_event_name
    return _written(HookOutput(hook_specific_output=Specific(event, reply.context)))


def _written(output: HookOutput) -> bytes:
    return msgspec.json.encode(output) + b"\n"
