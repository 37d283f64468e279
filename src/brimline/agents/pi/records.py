"""The entries of a session, and the lines of `--mode json` and `--mode rpc`, with figures."""

import msgspec

from brimline.context.usage import Usage

NULL = msgspec.Raw(b"null")

# A shorter response id is not unique: Ollama draws its ids from a thousand.
MIN_ID_CHARS = 13


class PiCost(msgspec.Struct, frozen=True, gc=False):
    """The client's own figures in USD; all are 0 if it has no price."""

    total: float | None = None


class PiCacheLifetimes(msgspec.Struct, frozen=True, gc=False):
    """Cache writes by their lifetime, as a fork of Pi records them."""

    ephemeral_1h: int | None = msgspec.field(default=None, name="ephemeral1h")


class PiTokens(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Pi's count: disjoint, the reasoning a part of the output. v1 has no totalTokens."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    cache_write_1h: int = msgspec.field(default=0, name="cacheWrite1h")
    cttl: PiCacheLifetimes | None = None
    reasoning: int | None = None
    reasoning_tokens: int | None = None
    cost: PiCost | None = None

    @property
    def dollars(self) -> float | None:
        """The client's own figure; None if it has no price."""
        return (self.cost.total if self.cost else None) or None

    @property
    def blank(self) -> bool:
        """Whether the call was refused or cancelled."""
        return not (self.input or self.output or self.cache_read or self.cache_write)

    def usage(self) -> Usage:
        """Raises InvalidUsage."""
        reasoning = self.reasoning_tokens if self.reasoning is None else self.reasoning
        if reasoning is not None and reasoning > self.output:
            reasoning = None
        kept_1h = self.cache_write_1h or (self.cttl and self.cttl.ephemeral_1h) or 0
        kept_1h = min(kept_1h, self.cache_write)
        return Usage(self.input, self.cache_read, self.cache_write, self.output, reasoning, kept_1h)


class PiMessage(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A message; only an assistant's has usage. Its time is in milliseconds."""

    role: str | None = None
    usage: PiTokens | None = None
    model: str | None = None
    provider: str | None = None
    response_id: str | None = None
    timestamp: float | None = None

    @property
    def failed(self) -> bool:
        """Whether it is a reply without any tokens."""
        return self.role == "assistant" and (self.usage is None or self.usage.blank)

    @property
    def named(self) -> bool:
        """Whether the provider's id identifies it."""
        return self.response_id is not None and len(self.response_id) >= MIN_ID_CHARS

    @property
    def call(self) -> str | None:
        """The call's id, the same in every copy of the message: the provider's or a made-up one."""
        if self.named:
            return self.response_id
        if self.timestamp is None or self.usage is None:
            return None
        usage = self.usage
        counts = f"{usage.input}+{usage.cache_read}+{usage.cache_write}+{usage.output}"
        return f"{self.response_id or ''}@{self.timestamp:.0f}:{counts}"


class PiEntry(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A line of a session; version 1 has no ids."""

    type: str
    id: str | None = None
    parent_id: str | msgspec.UnsetType | None = msgspec.UNSET
    timestamp: str | int | float | None = None
    message: PiMessage | str | None = None
    cwd: str | None = None
    usage: msgspec.Raw = NULL
    model: str | None = None
    tokens_before: int | None = None
    target_id: str | None = None
    name: str | None = None
    title: str | None = None


class Result(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a compaction did."""

    tokens_before: int | None = None
    estimated_tokens_after: int | None = None
    usage: PiTokens | None = None


class PiStreamLine(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A line of `--mode json` or `--mode rpc`.

    A response has `command` and `data`, and the `id` that the caller chose.
    """

    type: str
    id: str | int | float | None = None
    cwd: str | None = None
    timestamp: str | int | float | None = None
    message: PiMessage | str | None = None
    usage: PiTokens | None = None
    reason: str | None = None
    result: msgspec.Raw = NULL
    name: str | None = None
    command: str | None = None
    success: bool | None = None
    data: msgspec.Raw = NULL


class PiModel(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A model in a response."""

    id: str | None = None
    context_window: int | None = None


class PiState(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The data of the response to `get_state`."""

    session_id: str | None = None
    session_name: str | None = None
    model: PiModel | None = None


class PiCancelled(msgspec.Struct, frozen=True, gc=False):
    """The data of the response to a command that an extension may cancel."""

    cancelled: bool = False


# Entries without figures.
QUIET = frozenset({
    "credential_pin", "custom", "custom_message", "label", "mode_change", "model_change",
    "session_init", "thinking_level_change", "ttsr_injection",
})  # fmt: skip

# Lines of the stream without new figures.
QUIET_LINES = frozenset({
    "agent_end", "agent_settled", "agent_start", "auto_retry_end", "auto_retry_start",
    "bash_execution_update", "entry_appended", "extension_error", "extension_ui_request",
    "queue_update", "summarization_retry_attempt_start", "summarization_retry_finished",
    "summarization_retry_scheduled", "thinking_level_changed", "tool_execution_end",
    "tool_execution_start", "tool_execution_update", "turn_end", "turn_start",
})  # fmt: skip

# Every line of the stream but its header.
LINES = QUIET_LINES | {
    "auto_compaction_end",
    "auto_compaction_start",
    "compaction_end",
    "compaction_start",
    "message_end",
    "message_start",
    "message_update",
    "response",
    "session_info_changed",
}


class PiHead(msgspec.Struct, frozen=True, rename="camel"):
    """One of the first lines, to recognise the agent."""

    type: str
    id: object = None
    cwd: str | None = None
    timestamp: object = None
    version: int | None = None
    model_id: str | None = None
    thinking_level: str | None = None
    command: str | None = None
    success: bool | None = None
    request_seq: object = msgspec.field(default=None, name="request_seq")
    message: PiMessage | str | None = None

    @property
    def is_header(self) -> bool:
        has_texts = isinstance(self.id, str) and isinstance(self.timestamp, str)
        return self.type == "session" and self.cwd is not None and has_texts

    @property
    def has_usage(self) -> bool:
        """Whether it is a message with Pi's counts."""
        return isinstance(self.message, PiMessage) and self.message.usage is not None

    @property
    def has_settings(self) -> bool:
        """Whether it sets model or thinking level, as the first version did in header or entry."""
        return self.model_id is not None or self.thinking_level is not None

    @property
    def is_printed(self) -> bool:
        """Whether `--mode rpc` printed it, which has no header.

        Debug adapters reply to commands alike, but number the requests.
        """
        if self.type == "response":
            is_reply = None not in (self.command, self.success)
            return is_reply and self.request_seq is None
        return self.type in LINES and self.has_usage
