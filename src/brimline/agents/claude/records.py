"""The parts of Claude Code's records that have figures; everything else in them is skipped."""

from typing import Annotated

import msgspec

from brimline.context.client_report import EpochSeconds, Quota, Quotas
from brimline.context.providers.anthropic import MessageUsage
from brimline.files.foreign_json import ABSENT


class ClaudeMessage(msgspec.Struct, frozen=True, gc=False):
    """The provider's message in an `assistant` record; in a `user` record nothing of it is set."""

    id: str | None = None
    model: str | None = None
    usage: MessageUsage | None = None


class CompactMetadata(msgspec.Struct, frozen=True, gc=False):
    """The metadata of a compaction: camel case in transcripts, snake case in streams."""

    trigger: str | None = None
    camel_before: int | None = msgspec.field(default=None, name="preTokens")
    snake_before: int | None = msgspec.field(default=None, name="pre_tokens")

    @property
    def before(self) -> int | None:
        """What the context held."""
        return self.snake_before if self.camel_before is None else self.camel_before


class ClaudeRecord(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One line of a transcript."""

    type: str
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    is_sidechain: bool = False
    agent_id: str | None = None
    timestamp: str | None = None
    session_id: str | None = None
    request_id: str | None = None
    cwd: str | None = None
    version: str | None = None
    requested_model: str | None = None
    effort: str | None = None
    git_branch: str | None = None
    is_compact_summary: bool = False
    compact_metadata: CompactMetadata | None = None
    message: ClaudeMessage | None = None


class TitleRecord(msgspec.Struct, frozen=True, rename="camel"):
    """A record that names the session; each kind has one of these."""

    ai_title: str | None = None
    custom_title: str | None = None
    summary: str | None = None

    @property
    def text(self) -> str | None:
        return self.custom_title or self.ai_title or self.summary


class ModelUsage(msgspec.Struct, frozen=True, rename="camel"):
    """What a `result` line says about one model."""

    context_window: int | None = None
    canonical_model: str | None = None


class RateLimitWindow(msgspec.Struct, frozen=True, rename="camel"):
    """One quota of a subscription; `utilization` is a share, 1 is all of it."""

    utilization: Annotated[float, msgspec.Meta(ge=0, le=10)] | None = None
    resets_at: EpochSeconds | None = None
    status: str | None = None

    @property
    def quota(self) -> Quota | None:
        """A quota that refuses calls is used up, whatever the share says."""
        used = 1.0 if self.status == "rejected" else self.utilization
        if used is None or self.resets_at is None:
            return None
        return Quota(round(100 * used, 1), self.resets_at)


class RateLimitInfo(RateLimitWindow, frozen=True, rename="camel"):
    """What a `rate_limit_event` line reports: the quota that counts now, and all of them."""

    rate_limit_type: str | None = None
    unified_windows: dict[str, RateLimitWindow] = {}

    @property
    def quotas(self) -> Quotas:
        windows = dict(self.unified_windows)
        if self.rate_limit_type is not None:
            windows.setdefault(self.rate_limit_type, self)
        known = {name: window.quota for name, window in windows.items()}
        return Quotas(five_hour=known.get("five_hour"), seven_day=known.get("seven_day"))


class ClaudeStreamLine(msgspec.Struct, frozen=True):
    """One line of `--output-format stream-json`."""

    type: str
    subtype: str | None = None
    session_id: str | None = None
    parent_tool_use_id: str | None = None
    uuid: str | None = None
    request_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    model: str | None = None
    claude_code_version: str | None = None
    qwen_code_version: str | None = None
    status: str | None = None
    message: ClaudeMessage | None = None
    event: msgspec.Raw = ABSENT
    usage: MessageUsage | None = None
    compact_metadata: CompactMetadata | None = None
    model_usage: dict[str, ModelUsage] = msgspec.field(
        default_factory=dict[str, ModelUsage], name="modelUsage"
    )
    rate_limit_info: msgspec.Raw = ABSENT


class Kind(msgspec.Struct, frozen=True):
    """The kind of a record of which other fields have unexpected types."""

    type: str
    subtype: object = None
    tool_use_id: object = None


class ClaudeHead(msgspec.Struct, frozen=True):
    """A first line, to recognise the agent."""

    type: str | None = None
    transcript_session: str | None = msgspec.field(default=None, name="sessionId")
    stream_session: str | None = msgspec.field(default=None, name="session_id")
    subtype: str | None = None
    leaf: str | None = msgspec.field(default=None, name="leafUuid")
    snapshot: msgspec.Raw = ABSENT
    user_type: str | None = msgspec.field(default=None, name="userType")
    claude_code_version: str | None = None
    qwen_code_version: str | None = None
    api_key_source: str | None = msgspec.field(default=None, name="apiKeySource")
    mcp_servers: msgspec.Raw = ABSENT
    model_usage: msgspec.Raw = msgspec.field(default=ABSENT, name="modelUsage")


TRANSCRIPT_KINDS = frozenset({
    "agent-name", "agent-setting", "ai-title", "api-request", "api-request-blob",
    "api-request-shape", "assistant", "atis-latch", "attachment", "bridge-session", "cost-state",
    "custom-title", "file-history-delta", "file-history-snapshot", "frame-link", "last-prompt",
    "mode", "permission-mode", "pr-link", "progress", "queue-operation", "relocated", "summary",
    "system", "tag", "tools-used", "user", "worktree-state",
})  # fmt: skip

STREAM_KINDS = frozenset({
    "assistant", "control_request", "control_response", "keep_alive", "rate_limit_event",
    "result", "stream_event", "system", "tool_progress", "tool_use_summary", "user",
})  # fmt: skip
