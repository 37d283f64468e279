"""Hook adapters: they turn hook requests into observations, and replies into answers."""

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

import msgspec

from brimline.agents.hook_payloads import EventOutput, HookInput, HookOutput, StatusLineReport
from brimline.events import Trigger
from brimline.observations import Observation, ObservationKind, Reply

_hook = msgspec.json.Decoder(HookInput)

# What Claude Code and Codex call by the same names.
EVENTS: Mapping[str, ObservationKind] = {
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "Stop": "stopped",
    "PreCompact": "compacting",
    "PostCompact": "compacted",
    "SessionEnd": "ended",
}

STARTS: Mapping[str, ObservationKind] = {"compact": "compacted", "clear": "cleared"}
UNANSWERABLE = frozenset({"PostCompact"})
TRIGGERS: dict[str, Trigger] = {"auto": "auto", "manual": "manual"}


RequestKind: TypeAlias = Literal["hook", "statusline", "delivered"]


class HookRequest(msgspec.Struct, frozen=True):
    """What an agent's hook or status line sent. Repeated requests have the same id.

    `wants_receipt`: its client gives a receipt back if a delivery is not confirmed.
    """

    kind: RequestKind
    agent: str
    id: str
    pid: int
    env: dict[str, str]
    body: bytes
    wants_receipt: bool = False

    @property
    def at(self) -> float:
        """When the agent ran the client, in seconds since the epoch."""
        return int(self.id.partition("-")[0]) / 1e9


class HookAdapter(Protocol):
    """Translates between an agent's hooks and the monitor."""

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        """Return what a hook reports; None if that is of no interest.

        Raises msgspec.DecodeError or InvalidUsage if the body is not a hook's input.
        """
        ...

    def encode_reply(self, request: HookRequest, reply: Reply) -> bytes:
        """Return a reply as the client expects it; empty if there is nothing to say."""
        ...

    def may_read_files(self, request: HookRequest) -> bool:
        """Return whether `observe` may read files of the client."""
        ...


class StatusLineAdapter(Protocol):
    """Reads the input of an agent's status line."""

    def __call__(
        self, request: HookRequest, at: float, late: bool = False
    ) -> tuple[Observation, StatusLineReport]:
        """Return what a status line reports; raises msgspec.DecodeError."""
        ...


class StandardHooks(msgspec.Struct, frozen=True):
    """Hooks with the input and output of Claude Code's: event names, and reasons of SessionStart.

    Answers to `unanswerable` events are dropped by the client, or taken for an error.
    """

    events: Mapping[str, ObservationKind]
    starts: Mapping[str, ObservationKind]
    unanswerable: frozenset[str] = UNANSWERABLE

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        """Return what a hook reports; None for a subagent's hook."""
        hook_input = decode_input(request)
        return (
            None
            if hook_input.agent_id is not None
            else self.observe_main(request, hook_input, at, late)
        )

    def observe_main(
        self, request: HookRequest, hook_input: HookInput, at: float, late: bool
    ) -> Observation | None:
        """Return what a hook of the main thread reports."""
        if hook_input.hook_event_name == "SessionStart":
            what = self.starts.get(hook_input.source or "", "started")
        else:
            what = self.events.get(hook_input.hook_event_name)
        return None if what is None else self.observation(what, request, hook_input, at, late)

    def observation(
        self,
        what: ObservationKind,
        request: HookRequest,
        hook_input: HookInput,
        at: float,
        late: bool,
    ) -> Observation:
        """Return an observation with all fields of the input."""
        return Observation(
            id=request.id,
            agent=request.agent,
            session=hook_input.session_id,
            kind=what,
            at=at,
            transcript=hook_input.transcript_path,
            project=hook_input.cwd,
            model=hook_input.model,
            parent=request.env.get("BRIMLINE_PARENT"),
            trigger=TRIGGERS.get(hook_input.trigger or ""),
            is_continuation=hook_input.stop_hook_active,
            is_late=late or hook_input.hook_event_name in self.unanswerable,
        )

    def may_read_files(self, request: HookRequest) -> bool:
        return False

    def encode_reply(self, request: HookRequest, reply: Reply) -> bytes:
        """Return a reason to continue (Stop), or context for the model."""
        if reply.stop_feedback is not None:
            return _encode(HookOutput(decision="block", reason=reply.stop_feedback))
        if reply.context is None:
            return b""
        event = decode_input(request).hook_event_name
        return _encode(HookOutput(hook_specific_output=EventOutput(event, reply.context)))


def decode_input(request: HookRequest) -> HookInput:
    """Decode a hook's input; raises msgspec.DecodeError."""
    return _hook.decode(request.body)


def _encode(output: HookOutput) -> bytes:
    return msgspec.json.encode(output) + b"\n"
