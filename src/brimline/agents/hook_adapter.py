"""Hook adapters: they turn hook requests into observations, and replies into answers.

First the JSON that clients give their hooks and status lines: the parts that we read.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Literal, Protocol, TypeAlias

import msgspec

from brimline.agents.observations import Observation, ObservationKind, Reply
from brimline.agents.transcripts.source import MALFORMED, Transcript
from brimline.context.client_report import Dollars, PromptCache, Quotas
from brimline.context.events import MAIN, TRIGGERS, WindowReported
from brimline.context.usage import Usage
from brimline.files.foreign_json import ABSENT, JsonDecoder

MAX_PROMPT_CHARS = 64 << 10  # of a prompt that is remembered
MAX_TOKENS = 10**8  # more tokens than any window holds; an epoch time is far more

Id: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
TokenCount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MAX_TOKENS)]
WindowSize: TypeAlias = Annotated[int, msgspec.Meta(gt=0, lt=MAX_TOKENS)]
Percentage: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=100)]


class HookInput(msgspec.Struct, frozen=True):
    """What a client writes on a hook's standard input.

    `agent_id` is set inside a subagent of Claude Code and Codex. `source` is why a session starts,
    `trigger` who compacts. Of `tool_response` only the size is used.
    """

    session_id: Id
    hook_event_name: str
    transcript_path: str | None = None
    cwd: str | None = None
    model: str | None = None
    source: str | None = None
    trigger: str | None = None
    reason: str | None = None
    agent_id: str | None = None
    agent_transcript_path: str | None = None
    stop_hook_active: bool = False
    prompt: msgspec.Raw = ABSENT
    tool_response: msgspec.Raw = ABSENT


class _TextBlock(msgspec.Struct, frozen=True):
    text: str = ""


_content = JsonDecoder(str | tuple[_TextBlock, ...])


def _prompt_of(hook_input: HookInput) -> str:
    """Return what the user wrote; empty if a tag begins it, which the client wrote."""
    with suppress(*MALFORMED):
        decoded = _content.decode(hook_input.prompt)
        text = decoded if isinstance(decoded, str) else "\n".join(block.text for block in decoded)
        return "" if text.startswith("<") else text[:MAX_PROMPT_CHARS]
    return ""


def text_size(content: msgspec.Raw) -> int:
    """Return the UTF-8 bytes of a JSON text, or of the texts in blocks; 0 if it is neither."""
    with suppress(*MALFORMED):
        decoded = _content.decode(content)
        texts = (decoded,) if isinstance(decoded, str) else (block.text for block in decoded)
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return 0


class StatusModel(msgspec.Struct, frozen=True):
    """The model in a status line's input."""

    id: str | None = None
    display_name: str | None = None


class CurrentUsage(msgspec.Struct, frozen=True):
    """The usage of the last call of the main thread; all 0 after a compaction."""

    input_tokens: TokenCount
    cache_creation_input_tokens: TokenCount
    cache_read_input_tokens: TokenCount
    output_tokens: TokenCount = 0

    @property
    def usage(self) -> Usage:
        return Usage(
            self.input_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
            self.output_tokens,
        )


class ContextWindow(msgspec.Struct, frozen=True):
    """The context in a status line's input; its percentage is only checked, never shown."""

    context_window_size: WindowSize | None = None
    current_usage: CurrentUsage | None = None
    used_percentage: Percentage | None = None
    total_input_tokens: float | None = None
    total_output_tokens: float | None = None


class StatusCost(msgspec.Struct, frozen=True):
    """The cost of a session so far, as the client computes it."""

    total_cost_usd: Dollars | None = None


class Workspace(msgspec.Struct, frozen=True):
    """The folder in which the session began."""

    project_dir: str | None = None


class StatusInput(msgspec.Struct, frozen=True):
    """What Claude Code writes on a status line's standard input."""

    session_id: Id
    transcript_path: str | None = None
    cwd: str | None = None
    version: str | None = None
    model: StatusModel = StatusModel()
    context_window: ContextWindow = ContextWindow()
    cost: StatusCost = StatusCost()
    workspace: Workspace = Workspace()
    rate_limits: Quotas = Quotas()
    prompt_cache: PromptCache = PromptCache()


class StatusLineReport(msgspec.Struct, frozen=True):
    """A status line's input without invalid values; `reason` names the worst of them.

    `project` is where the session began: its agent may work in another folder by now. `called`:
    the session has made a call, even if its usage is unknown.
    """

    input: StatusInput
    reason: str | None = None
    project: str | None = None
    called: bool = False


class EventOutput(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of a hook's answer that is for its event."""

    hook_event_name: str
    additional_context: str


class HookOutput(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a hook answers on its standard output."""

    decision: str | None = None
    reason: str | None = None
    hook_specific_output: EventOutput | None = None


_hook_input = JsonDecoder(HookInput)

# What Claude Code and Codex call by the same names.
EVENTS: Mapping[str, ObservationKind] = {
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "Stop": "stopped",
    "PreCompact": "compacting",  # of Claude Code also if nothing is compacted then (2.1.325)
    "PostCompact": "compacted",
    "SessionEnd": "ended",
}

# Events of a subagent, which has its own thread. SubagentStop also ends every compaction of Claude
# Code (2.1.325).
SUBAGENT_EVENTS: Mapping[str, ObservationKind] = {
    "PostToolUse": "tool",
    "PostToolBatch": "tool",
    "SubagentStop": "ended",
}

STARTS: Mapping[str, ObservationKind] = {"compact": "compacted", "clear": "cleared"}
UNANSWERABLE = frozenset({"PostCompact"})


RequestKind: TypeAlias = Literal["hook", "statusline", "delivered", "here"]


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
        hook_input = _hook_input.decode(request.body)
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

    def observe_subagent(
        self, request: HookRequest, hook_input: HookInput, path: str, at: float, late: bool
    ) -> Observation | None:
        """Return what a hook of a subagent reports, whose transcript is at `path`.

        None if it has none: the subagent of Claude Code that summarises.
        """
        kind = SUBAGENT_EVENTS.get(hook_input.hook_event_name)
        file = None if kind is None else _subagent_file(request.agent, hook_input, path)
        if kind is None or file is None:
            return None
        observation = self.observation(kind, request, hook_input, at, late)
        return msgspec.structs.replace(observation, thread=file.thread, file=file, model=None)

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
            trigger=TRIGGERS.get(hook_input.trigger),
            is_continuation=hook_input.stop_hook_active,
            is_late=late or hook_input.hook_event_name in self._unanswerable,
            hook_event=hook_input.hook_event_name,
            prompt=_prompt_of(hook_input) if kind == "prompt" else "",
            added_bytes=text_size(hook_input.prompt) + text_size(hook_input.tool_response),
        )


def _subagent_file(agent: str, hook_input: HookInput, path: str) -> Transcript | None:
    path = hook_input.agent_transcript_path or path
    try:
        status = os.stat(path)
    except OSError:
        return None
    session, thread = hook_input.session_id, hook_input.agent_id or MAIN
    return Transcript(agent, path, status.st_mtime, status.st_size, session, thread)


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
