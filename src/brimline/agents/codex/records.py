"""What Codex writes: the records of a rollout and the lines of `exec --json`, as far as we read."""

import re

import msgspec

from brimline.agents.transcripts.source import parse_branch
from brimline.context.client_report import EpochSeconds, Quota, Quotas, UsedPercentage
from brimline.context.events import MAIN
from brimline.context.usage import Usage, from_subset
from brimline.files.foreign_json import ABSENT

NULL, EMPTY = msgspec.Raw(b"null"), msgspec.Raw(b'""')
FIVE_HOURS_MIN, SEVEN_DAYS_MIN = 300, 10_080

# How Codex estimates the tokens of an item (its context_manager/history.rs).
BYTES_PER_TOKEN = 4
ENCRYPTION_BYTES = 650  # of encrypted content that are no content
IMAGE_BYTES = 7_373
# Its estimate of encrypted reasoning by the tokens that were billed for it: in 11 of 12 recorded
# automatic compactions this explains why Codex compacted then, and not a call before.
ESTIMATED_PERCENT = 120
INLINE_IMAGE = re.compile(rb'"data:image/[^",]*;base64,([^"]*)"')
# The beginning of the first text of a message that the client wrote for the user.
CLIENT_TEXT = re.compile(
    rb'\A\[\{[^{}]*?"text":"(?:\\n| )*(?:<[a-z_]+>\\n|# AGENTS\.md instructions)'
)
REPLY_ITEMS = frozenset({
    "compaction", "context_compaction", "custom_tool_call", "function_call",
    "image_generation_call", "local_shell_call", "reasoning", "tool_search_call",
    "web_search_call",
})  # fmt: skip


class CodexLine(msgspec.Struct, frozen=True, gc=False):
    """A record of a rollout; in 2025 the first was a header and the rest items, without payload."""

    type: str | None = None
    payload: msgspec.Raw = NULL
    timestamp: str | None = None
    ordinal: int | None = None
    id: str | None = None
    record_type: str | None = None


class CodexTokens(msgspec.Struct, frozen=True, gc=False):
    """Codex's count: the input includes what was read from and written to the cache."""

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    total_tokens: int | None = None
    cache_write_input_tokens: int = 0
    reasoning_output_tokens: int | None = None

    @property
    def blank(self) -> bool:
        """Whether it is an estimate of the context, not a call."""
        return not self.input_tokens and not self.output_tokens

    def usage(self) -> Usage:
        """In disjoint buckets; raises InvalidUsage."""
        return from_subset(
            self.input_tokens,
            self.cached_input_tokens,
            self.cache_write_input_tokens,
            self.output_tokens,
            self.reasoning_output_tokens,
        )


class Spawn(msgspec.Struct, frozen=True, gc=False):
    parent_thread_id: str | None = None
    agent_nickname: str | None = None
    agent_role: str | None = None


class Subagent(msgspec.Struct, frozen=True, gc=False):
    thread_spawn: Spawn | None = None


class Origin(msgspec.Struct, frozen=True, gc=False):
    subagent: str | Subagent | None = None


class HistoryBase(msgspec.Struct, frozen=True, gc=False):
    """What a file continues: the records of a thread before an ordinal."""

    thread_id: str = ""
    end_ordinal_exclusive: int = 0


class Git(msgspec.Struct, frozen=True, gc=False):
    """The repository of a session; on a detached head without a branch."""

    branch: str | None = None


class Meta(msgspec.Struct, frozen=True, gc=False):
    """session_meta: `id` is the thread's, `session_id` that of the session it belongs to."""

    id: str
    session_id: str | None = None
    parent_thread_id: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    source: str | Origin | None = None
    agent_nickname: str | None = None
    agent_role: str | None = None
    subagent_history_start_ordinal: int | None = None
    forked_from_id: str | None = None
    history_base: msgspec.Raw = NULL
    git: Git | None = None

    @property
    def branch(self) -> str | None:
        return parse_branch(self.git.branch) if self.git else None

    @property
    def copies(self) -> bool:
        """Whether the file is a fork that begins with copies of another one's records."""
        return self.forked_from_id is not None and not self.continues

    @property
    def continues(self) -> bool:
        """Whether the file continues another one without repeating its records (since 0.166)."""
        return self.history_base != NULL

    @property
    def _spawn(self) -> Spawn:
        subagent = self.source.subagent if isinstance(self.source, Origin) else None
        spawn = subagent.thread_spawn if isinstance(subagent, Subagent) else None
        return spawn or Spawn()

    @property
    def session(self) -> str:
        """The session that the file belongs to; for a subagent its parent's."""
        if self.session_id and self.session_id != self.id:
            return self.session_id
        return self.parent_thread_id or self._spawn.parent_thread_id or self.id

    @property
    def thread(self) -> str:
        """`main`, or the subagent's name with a part of its id, since names are used again."""
        if self.session == self.id:
            return MAIN
        spawn = self._spawn
        name = self.agent_nickname or spawn.agent_nickname or self.agent_role or spawn.agent_role
        return f"{name}-{self.id[-8:]}" if name else self.id


class TurnContext(msgspec.Struct, frozen=True, gc=False):
    """turn_context, or the thread's settings; only the settings have a service tier."""

    model: str | None = None
    turn_id: str | None = None
    service_tier: str | None = None
    effort: str | None = None


class CodexRecord(msgspec.Struct, frozen=True, gc=False):
    """token_usage_record: one call, and the thread's running total after it."""

    usage: CodexTokens
    thread_token_usage: CodexTokens
    response_id: str | None = None
    thread_id: str | None = None


class CompactionItem(msgspec.Struct, frozen=True, gc=False):
    """compacted: the call that wrote the summary, if it was an ordinary one."""

    compaction_response_id: str | None = None


class ResponseItem(msgspec.Struct, frozen=True, gc=False):
    """response_item: an item of the conversation, by the model or for it.

    Who publishes a rollout may have taken out the encrypted content; it is null if the provider
    encrypts none.
    """

    type: str = ""
    role: str | None = None
    encrypted_content: msgspec.Raw = EMPTY
    content: msgspec.Raw = NULL

    @property
    def is_reply(self) -> bool:
        """Whether the model wrote it."""
        return self.type in REPLY_ITEMS or (self.type == "message" and self.role == "assistant")

    @property
    def is_prompt(self) -> bool:
        """Whether a turn of the user begins with it, and not a text that the client added."""
        is_user = self.type == "message" and self.role == "user"
        return is_user and not CLIENT_TEXT.search(bytes(self.content))

    @property
    def is_encrypted_reasoning(self) -> bool:
        return self.type == "reasoning" and self.encrypted_content != NULL

    @property
    def encrypted_tokens(self) -> int:
        """The tokens of encrypted reasoning, as Codex estimates them: of base64, less a head."""
        length = len(bytes(self.encrypted_content)) - len('""')
        return _tokens_of(max(0, length * 3 // 4 - ENCRYPTION_BYTES))


def estimate_item(item: bytes) -> int:
    """Return the tokens of an item for the model, as Codex estimates them by its JSON."""
    size = len(item)
    if b"data:image/" in item:
        images = INLINE_IMAGE.findall(item)
        size += IMAGE_BYTES * len(images) - sum(map(len, images))
    return _tokens_of(size)


def _tokens_of(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


class EventKind(msgspec.Struct, frozen=True, gc=False):
    type: str


class Info(msgspec.Struct, frozen=True, gc=False):
    """The running total, the last call, and the window that Codex grants.

    `last_usage_includes_reasoning` (since 0.166): the server counts the reasoning of earlier turns.
    """

    total_token_usage: CodexTokens
    last_token_usage: CodexTokens
    model_context_window: int | None = None
    last_usage_includes_reasoning: bool = False


class CodexRateLimit(msgspec.Struct, frozen=True, gc=False):
    """A quota of a ChatGPT plan; `resets_at` is in seconds since the epoch (0.142 and later)."""

    used_percent: UsedPercentage
    window_minutes: int
    resets_at: EpochSeconds


class RateLimits(msgspec.Struct, frozen=True, gc=False):
    """What token_count has of quotas; the first may be of five hours or of seven days."""

    primary: CodexRateLimit | None = None
    secondary: CodexRateLimit | None = None

    def quotas(self, at: float) -> Quotas:
        limits = [limit for limit in (self.primary, self.secondary) if limit]
        by_minutes = {
            each.window_minutes: Quota(each.used_percent, each.resets_at) for each in limits
        }
        return Quotas(at, by_minutes.get(FIVE_HOURS_MIN), by_minutes.get(SEVEN_DAYS_MIN))


class EventMessage(msgspec.Struct, frozen=True, gc=False):
    """event_msg: token_count has `info` and `rate_limits`, or one of them, task_started the window.

    thread_settings_applied has the model before the first turn_context.
    """

    info: Info | msgspec.UnsetType | None = msgspec.UNSET
    model_context_window: int | None = None
    thread_settings: TurnContext = TurnContext()
    thread_name: str | None = None
    rate_limits: msgspec.Raw = NULL


class RolledBack(msgspec.Struct, frozen=True, gc=False):
    """event_msg thread_rolled_back."""

    num_turns: int


class CodexStreamLine(msgspec.Struct, frozen=True, gc=False):
    """A line of `exec --json`."""

    type: str
    thread_id: str | None = None
    usage: msgspec.Raw = NULL


# Records without figures; the last nine are the items of 2025.
QUIET = frozenset({
    "world_state", "dynamic_tools_updated", "inter_agent_communication",
    "inter_agent_communication_metadata", "security_risk_score", "realtime_item",
    "custom_tool_call", "custom_tool_call_output", "function_call", "function_call_output",
    "ghost_snapshot", "local_shell_call", "message", "reasoning", "web_search_call",
})  # fmt: skip

# Kinds of event_msg without figures.
QUIET_EVENTS = frozenset({
    "agent_message", "agent_reasoning", "agent_reasoning_raw_content",
    "agent_reasoning_section_break", "background_event", "collab_agent_interaction_end",
    "collab_agent_spawn_end", "collab_close_end", "collab_resume_end", "collab_waiting_end",
    "context_compacted", "deprecation_notice", "dynamic_tool_call_request",
    "dynamic_tool_call_response", "entered_review_mode", "error", "exec_command_begin",
    "exec_command_end", "exited_review_mode", "guardian_assessment", "image_generation_end",
    "item_completed", "item_started", "mcp_tool_call_begin", "mcp_tool_call_end",
    "patch_apply_begin", "patch_apply_end", "plan_update", "stream_error", "sub_agent_activity",
    "thread_goal_updated", "turn_diff", "undo_completed", "undo_started", "view_image_tool_call",
    "warning", "web_search_begin", "web_search_end",
})  # fmt: skip

# Lines of `exec --json` without figures.
QUIET_LINES = frozenset(
    {"turn.started", "turn.failed", "item.started", "item.updated", "item.completed", "error"}
)


class CodexHead(msgspec.Struct, frozen=True):
    type: str | None = None
    payload: dict[str, msgspec.Raw] | None = None
    timestamp: str | None = None
    thread_id: str | None = None
    id: str | None = None
    instructions: msgspec.Raw = ABSENT
    git: msgspec.Raw = ABSENT
