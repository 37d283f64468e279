"""Hook adapters: they turn hook requests into observations, and replies into answers."""

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

import msgspec

from brimline.agents.hook_payloads import (
    EventOutput,
    HookInput,
    HookOutput,
    StatusLineReport,
    text_size,
)
from brimline.agents.observations import Observation, ObservationKind, Reply
from brimline.context.events import Trigger, WindowReported
from brimline.files.foreign_json import JsonDecoder

_hook = JsonDecoder(HookInput)

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


class StatusLineAdapter(Protocol):
    """Reads the input of an agent's status line."""

    def __call__(
        self, request: HookRequest, at: float, late: bool = False
    ) -> tuple[Observation, StatusLineReport]:
        """Return what a status line reports; raises MalformedJson."""
        ...


class HookAdapter:
    """Turns an agent's hook requests into observations, and replies into answers.

    As it is, for hooks with the input and output of Claude Code's: `events` are their names,
    `starts` the sources of SessionStart. Answers to `unanswerable` events are dropped by the
    client, or taken for an error.
    """

    def __init__(
        self,
        events: Mapping[str, ObservationKind] = EVENTS,
        starts: Mapping[str, ObservationKind] = STARTS,
        unanswerable: frozenset[str] = UNANSWERABLE,
    ) -> None:
        self._events = events
        self._starts = starts
        self._unanswerable = unanswerable

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        """Return what a hook reports; None if that is of no interest.

        Raises MalformedJson or InvalidUsage if the body is not a hook's input.
        """
        hook_input = _hook.decode(request.body)
        if hook_input.agent_id is not None:
            return None  # a subagent's
        return self.observe_main(request, hook_input, at, late)

    def may_read_files(self, request: HookRequest) -> bool:
        """Return whether `observe` may read files of the client."""
        return False

    def encode_reply(self, hook_event: str, reply: Reply) -> bytes:
        """Return a reason to continue (Stop), or context for the model; empty if there is none."""
        if reply.stop_feedback is not None:
            output = HookOutput(decision="block", reason=reply.stop_feedback)
        elif reply.context is not None:
            output = HookOutput(hook_specific_output=EventOutput(hook_event, reply.context))
        else:
            return b""
        return msgspec.json.encode(output) + b"\n"

    def observe_main(
        self, request: HookRequest, hook_input: HookInput, at: float, late: bool
    ) -> Observation | None:
        """Return what a hook of the main thread reports."""
        if hook_input.hook_event_name == "SessionStart":
            kind = self._starts.get(hook_input.source or "", "started")
        else:
            kind = self._events.get(hook_input.hook_event_name)
        return None if kind is None else self.observation(kind, request, hook_input, at, late)

    def observation(
        self,
        kind: ObservationKind,
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
            kind=kind,
            at=at,
            transcript=hook_input.transcript_path,
            project=hook_input.cwd,
            model=hook_input.model,
            parent=request.env.get("BRIMLINE_PARENT"),
            trigger=TRIGGERS.get(hook_input.trigger or ""),
            is_continuation=hook_input.stop_hook_active,
            is_late=late or hook_input.hook_event_name in self._unanswerable,
            hook_event=hook_input.hook_event_name,
            added_bytes=text_size(hook_input.prompt) + text_size(hook_input.tool_response),
        )


class ExtensionInput(HookInput, frozen=True):
    """What an extension of ours writes; `context_window` is the client's own figure.

    So are the model's longest reply `max_output` and its longest prompt `input_limit`.
    `added_bytes` is the size of the prompt, or of the results of tools.
    """

    context_window: int | None = None
    max_output: int | None = None
    input_limit: int | None = None
    added_bytes: int = 0
    is_interactive: bool | None = None


_extension = JsonDecoder(ExtensionInput)


class ExtensionHooks(HookAdapter):
    """Hooks of our own extensions: in the words of Claude Code's hooks, with the model's window."""

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        hook_input = _extension.decode(request.body)
        observation = self.observe_main(request, hook_input, at, late)
        if observation is None:
            return None
        observation = msgspec.structs.replace(
            observation,
            is_interactive=hook_input.is_interactive,
            added_bytes=max(0, hook_input.added_bytes),
        )
        if not hook_input.context_window or hook_input.model is None:
            return observation
        window = WindowReported(
            tokens=hook_input.context_window,
            model=hook_input.model,
            max_output=hook_input.max_output,
            input_limit=hook_input.input_limit,
        )
        return msgspec.structs.replace(observation, events=(window,))
