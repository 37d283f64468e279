"""Hook adapters: they turn hook requests into observations, and replies into answers."""

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

import msgspec

from brimline.agents.hook_payloads import EventOutput, HookInput, HookOutput, StatusLineReport
from brimline.events import Trigger
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
    """How a client calls what happens; `starts` has why a session starts.

    The answer to a `mute` event reaches nobody, or is taken for an error.
    """

    events: Mapping[str, ObservationKind]
    starts: Mapping[str, ObservationKind]
    unanswerable: frozenset[str] = UNANSWERABLE

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        """What a hook tells; nothing where its input says that it is a subagent's."""
        told = decode_input(request)
        return None if told.agent_id is not None else self.observe_main(request, told, at, late)

    def observe_main(
        self, request: HookRequest, told: HookInput, at: float, late: bool
    ) -> Observation | None:
        """What a hook of the main thread tells."""
        if told.hook_event_name == "SessionStart":
            what = self.starts.get(told.source or "", "started")
        else:
            what = self.events.get(told.hook_event_name)
        return None if what is None else self.observation(what, request, told, at, late)

    def observation(
        self, what: ObservationKind, request: HookRequest, told: HookInput, at: float, late: bool
    ) -> Observation:
        """All that an input tells, of what happened."""
        return Observation(
            id=request.id,
            agent=request.agent,
            session=told.session_id,
            kind=what,
            at=at,
            transcript=told.transcript_path,
            project=told.cwd,
            model=told.model,
            parent=request.env.get("BRIMLINE_PARENT"),
            trigger=TRIGGERS.get(told.trigger or ""),
            is_continuation=told.stop_hook_active,
            is_late=late or told.hook_event_name in self.unanswerable,
        )

    def may_read_files(self, request: HookRequest) -> bool:
        return False

    def encode_reply(self, request: HookRequest, reply: Reply) -> bytes:
        """A reply as all of them take it: the reason to go on, or what the model is to read."""
        if reply.stop_feedback is not None:
            return _encode(HookOutput(decision="block", reason=reply.stop_feedback))
        if reply.context is None:
            return b""
        event = decode_input(request).hook_event_name
        return _encode(HookOutput(hook_specific_output=EventOutput(event, reply.context)))


def decode_input(request: HookRequest) -> HookInput:
    """A hook's input; raises msgspec.DecodeError where it is none."""
    return _hook.decode(request.body)


def _encode(output: HookOutput) -> bytes:
    return msgspec.json.encode(output) + b"\n"
