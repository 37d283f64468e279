"""What the clients' hooks have in common: an event is heard, and an answer is written."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from brimline.events import Trigger
from brimline.hooks.protocol import Request
from brimline.hooks.wire import HookInput, HookOutput, Specific
from brimline.observations import Observation, ObservationKind, Reply

_hook = msgspec.json.Decoder(HookInput)

EVENTS: Mapping[str, ObservationKind] = {
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "Stop": "stopped",
    "PreCompact": "compacting",
    "PostCompact": "compacted",
    "SessionEnd": "ended",
}
"""What Claude Code and Codex call by the same names."""

STARTS: Mapping[str, ObservationKind] = {"compact": "compacted", "clear": "cleared"}
MUTE = frozenset({"PostCompact"})
TRIGGERS: dict[str, Trigger] = {"auto": "auto", "manual": "manual"}


class Hooks(Protocol):
    """An agent's hooks."""

    def heard(self, request: Request, at: float, late: bool = False) -> Observation | None:
        """What a hook tells; None where that is nothing to us.

        Raises msgspec.DecodeError or InvalidUsage where it is no hook's input.
        """
        ...

    def answer(self, request: Request, reply: Reply) -> bytes:
        """A reply as the client takes it; nothing where there is nothing to say."""
        ...


class Dialect(msgspec.Struct, frozen=True):
    """How a client calls what happens; `starts` has why a session starts.

    The answer to a `mute` event reaches nobody, or is taken for an error.
    """

    events: Mapping[str, ObservationKind]
    starts: Mapping[str, ObservationKind]
    mute: frozenset[str] = MUTE

    def heard(self, request: Request, at: float, late: bool = False) -> Observation | None:
        """What a hook tells; nothing where its input says that it is a subagent's."""
        told = decoded(request)
        return None if told.agent_id is not None else self.main(request, told, at, late)

    def main(self, request: Request, told: HookInput, at: float, late: bool) -> Observation | None:
        """What a hook of the main thread tells."""
        if told.hook_event_name == "SessionStart":
            what = self.starts.get(told.source or "", "started")
        else:
            what = self.events.get(told.hook_event_name)
        return None if what is None else self.as_heard(what, request, told, at, late)

    def as_heard(
        self, what: ObservationKind, request: Request, told: HookInput, at: float, late: bool
    ) -> Observation:
        """All that an input tells, of what happened."""
        return Observation(
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
            late=late or told.hook_event_name in self.mute,
        )

    def answer(self, request: Request, reply: Reply) -> bytes:
        """A reply as all of them take it: the reason to go on, or what the model is to read."""
        if reply.go_on is not None:
            return _written(HookOutput(decision="block", reason=reply.go_on))
        if reply.context is None:
            return b""
        event = decoded(request).hook_event_name
        return _written(HookOutput(hook_specific_output=Specific(event, reply.context)))


def decoded(request: Request) -> HookInput:
    """A hook's input; raises msgspec.DecodeError where it is none."""
    return _hook.decode(request.body)


def _written(output: HookOutput) -> bytes:
    return msgspec.json.encode(output) + b"\n"
