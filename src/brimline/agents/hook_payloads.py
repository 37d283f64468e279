"""The JSON that clients give their hooks and status lines: the parts that we read."""

from typing import Annotated, TypeAlias

import msgspec

Id: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class HookInput(msgspec.Struct, frozen=True):
    """What a client writes on a hook's standard input.

    `agent_id` is set inside a subagent of Claude Code and Codex. `source` is why a session starts,
    `trigger` who compacts.
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


class ModelMessage(msgspec.Struct, frozen=True):
    """A message of the conversation that a model is asked with; as it is written."""

    content: msgspec.Raw = msgspec.Raw(b"")


class ModelRequest(msgspec.Struct, frozen=True):
    """What a model is asked."""

    model: str | None = None
    messages: tuple[ModelMessage, ...] = ()


class Candidate(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a model's answer; the last one tells why it ends."""

    finish_reason: str | None = None


class ModelResponse(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a model's answer, and what it took so far."""

    candidates: tuple[Candidate, ...] = ()
    usage_metadata: dict[str, int] | None = None


class GeminiInput(HookInput, frozen=True):
    """What Gemini CLI writes: a tool's hook names the tool, a model's both sides of the call."""

    tool_name: str | None = None
    llm_request: ModelRequest = ModelRequest()
    llm_response: ModelResponse = ModelResponse()


class StatusModel(msgspec.Struct, frozen=True):
    """The model in a status line's input."""

    id: str | None = None
    display_name: str | None = None


class CurrentUsage(msgspec.Struct, frozen=True):
    """The usage of the last call of the main thread; all 0 after a compaction."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class ContextWindow(msgspec.Struct, frozen=True):
    """The context in a status line's input. Its percentages are never believed."""

    context_window_size: int | None = None
    current_usage: CurrentUsage | None = None


class Cost(msgspec.Struct, frozen=True):
    """What a session has cost so far, by the client."""

    total_cost_usd: float | None = None


class StatusInput(msgspec.Struct, frozen=True):
    """What Claude Code writes on a status line's standard input."""

    session_id: Id
    transcript_path: str | None = None
    cwd: str | None = None
    version: str | None = None
    model: StatusModel = StatusModel()
    context_window: ContextWindow = ContextWindow()
    cost: Cost = Cost()


class StatusLineReport(msgspec.Struct, frozen=True):
    """What a client told, without what cannot be; `wrong` names that, None where all is sound.

    `project` is where the session began: its agent may work in another folder by now. `called` says
    that a call was made, whatever is known of it.
    """

    input: StatusInput
    wrong: str | None = None
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
