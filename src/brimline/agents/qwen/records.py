"""The parts of Qwen Code's records that have figures; everything else in them is skipped."""

import msgspec

from brimline.context.usage import Usage, from_subset
from brimline.files.foreign_json import ABSENT


class QwenUsage(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The usage of one call; the prompt includes what was cached, the candidates the thoughts."""

    prompt_token_count: int = 0
    candidates_token_count: int = 0
    cached_content_token_count: int = 0
    thoughts_token_count: int = 0

    @property
    def usage(self) -> Usage | None:
        """The usage in our terms; None if all is zero, as of an aborted reply."""
        if not (self.prompt_token_count or self.candidates_token_count):
            return None
        return from_subset(
            self.prompt_token_count,
            self.cached_content_token_count,
            0,
            self.candidates_token_count,
            self.thoughts_token_count,
        )


class ApiResponse(msgspec.Struct, frozen=True, gc=False):
    """A call of any kind, as the client reports it for its own statistics."""

    event: str = msgspec.field(default="", name="event.name")
    response_id: str | None = None
    model: str | None = None
    subagent_id: str | None = None
    input_token_count: int = 0
    output_token_count: int = 0
    cached_content_token_count: int = 0
    thoughts_token_count: int = 0

    @property
    def tokens(self) -> QwenUsage:
        """The usage in the words of the record of a reply."""
        return QwenUsage(
            self.input_token_count,
            self.output_token_count,
            self.cached_content_token_count,
            self.thoughts_token_count,
        )


class UiTelemetry(msgspec.Struct, frozen=True, gc=False):
    """The payload of `ui_telemetry`."""

    event: ApiResponse = msgspec.field(default=ApiResponse(), name="uiEvent")


class CompressionInfo(msgspec.Struct, frozen=True, gc=False):
    """Why it compressed; its counts of tokens are estimates."""

    reason: str | None = msgspec.field(default=None, name="triggerReason")


class Compression(msgspec.Struct, frozen=True, gc=False):
    """The payload of `chat_compression`."""

    info: CompressionInfo = CompressionInfo()


class Title(msgspec.Struct, frozen=True, gc=False):
    """The payload of `custom_title`."""

    title: str | None = msgspec.field(default=None, name="customTitle")


class QwenRecord(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One line of a chat."""

    type: str
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    model: str | None = None
    agent_id: str | None = None
    context_window_size: int | None = None
    usage_metadata: QwenUsage | None = None
    system_payload: msgspec.Raw = ABSENT


class StreamUsage(msgspec.Struct, frozen=True, gc=False):
    """The usage of one call; the input includes what was cached."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0


class StreamMessage(msgspec.Struct, frozen=True, gc=False):
    """A part of a reply; only the last one has the usage."""

    id: str | None = None
    model: str | None = None
    usage: StreamUsage | None = None


class QwenStreamLine(msgspec.Struct, frozen=True):
    """One line of `--output-format stream-json`."""

    type: str
    subtype: str | None = None
    session_id: str | None = None
    parent_tool_use_id: str | None = None
    cwd: str | None = None
    qwen_code_version: str | None = None
    message: StreamMessage | None = None


class QwenHead(msgspec.Struct, frozen=True, rename="camel"):
    """A first line, to recognise the agent."""

    type: str | None = None
    session_id: str | None = None
    subtype: str | None = None
    qwen_code_version: str | None = msgspec.field(default=None, name="qwen_code_version")
    message: msgspec.Raw = ABSENT
    system_payload: msgspec.Raw = ABSENT


CHAT_KINDS = frozenset({"assistant", "system", "tool_result", "user"})

SYSTEM_KINDS = frozenset({
    "agent_bootstrap", "agent_launch_prompt", "agent_retry", "agent_session_ready", "at_command",
    "attribution_snapshot", "background_task_completed", "branch_checkpoint", "chat_compression",
    "custom_title", "file_history_snapshot", "goal_runtime", "goal_state", "goal_turn_end",
    "omni_recall", "parent_session", "realtime_message", "rewind", "session_artifact_event",
    "session_artifact_snapshot", "session_model", "session_source", "session_sources_snapshot",
    "slash_command", "turn_result", "ui_telemetry", "user_text_elements",
})  # fmt: skip

STREAM_KINDS = frozenset({
    "assistant", "control_request", "control_response", "result", "stream_event", "system", "user",
})  # fmt: skip
