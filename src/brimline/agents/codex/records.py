"""What Codex writes: the records of a rollout and the lines of `exec --json`, as far as we read."""

import msgspec

from brimline.events import MAIN
from brimline.usage import Usage, from_subset

NULL = msgspec.Raw(b"null")


class CodexLine(msgspec.Struct, frozen=True, gc=False):
    """A record of a rollout. In 2025 the first was a bare header, the rest bare items."""

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
        """Whether it counts nothing: an estimate of the context, and no call."""
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
    """How a subagent came to be."""

    parent_thread_id: str | None = None
    agent_nickname: str | None = None
    agent_role: str | None = None


class Subagent(msgspec.Struct, frozen=True, gc=False):
    """A kind of subagent; only spawned ones say more than their name."""

    thread_spawn: Spawn | None = None


class Origin(msgspec.Struct, frozen=True, gc=False):
    """Where a session came from, where that is more than a word."""

    subagent: str | Subagent | None = None


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
    history_base: msgspec.Raw = NULL

    @property
    def continues(self) -> bool:
        """Whether the file goes on from another, whose records it does not repeat."""
        return self.history_base != NULL

    @property
    def _spawn(self) -> Spawn:
        found = self.source.subagent if isinstance(self.source, Origin) else None
        spawn = found.thread_spawn if isinstance(found, Subagent) else None
        return spawn or Spawn()

    @property
    def session(self) -> str:
        """The session that the file belongs to: its parent's, where it is a subagent's."""
        if self.session_id and self.session_id != self.id:
            return self.session_id
        return self.parent_thread_id or self._spawn.parent_thread_id or self.id

    @property
    def thread(self) -> str:
        """`main`, or the subagent's name; names are used again, so a part of the id follows."""
        if self.session == self.id:
            return MAIN
        spawn = self._spawn
        name = self.agent_nickname or spawn.agent_nickname or self.agent_role or spawn.agent_role
        return f"{name}-{self.id[-8:]}" if name else self.id


class Context(msgspec.Struct, frozen=True, gc=False):
    """turn_context."""

    model: str | None = None
    turn_id: str | None = None


class CodexRecord(msgspec.Struct, frozen=True, gc=False):
    """token_usage_record: one call, and the thread's running total after it."""

    usage: CodexTokens
    thread_token_usage: CodexTokens
    response_id: str | None = None
    thread_id: str | None = None


class CompactionItem(msgspec.Struct, frozen=True, gc=False):
    """compacted: names the call that wrote the summary, where that was an ordinary one."""

    compaction_response_id: str | None = None


class Kind(msgspec.Struct, frozen=True, gc=False):
    """What kind of event_msg it is."""

    type: str


class Info(msgspec.Struct, frozen=True, gc=False):
    """The running total, the last call, and the window that Codex grants."""

    total_token_usage: CodexTokens
    last_token_usage: CodexTokens
    model_context_window: int | None = None


class Count(msgspec.Struct, frozen=True, gc=False):
    """event_msg token_count; without info it tells rate limits alone."""

    info: Info | None = None


class Started(msgspec.Struct, frozen=True, gc=False):
    """event_msg task_started."""

    model_context_window: int | None = None


class Applied(msgspec.Struct, frozen=True, gc=False):
    """event_msg thread_settings_applied: the model stands here before the first turn_context."""

    thread_settings: Context = Context()


class RolledBack(msgspec.Struct, frozen=True, gc=False):
    """event_msg thread_rolled_back."""

    num_turns: int


class Named(msgspec.Struct, frozen=True, gc=False):
    """event_msg thread_name_updated."""

    thread_name: str | None = None


class Printed(msgspec.Struct, frozen=True, gc=False):
    """A line of `exec --json`."""

    type: str
    thread_id: str | None = None
    usage: msgspec.Raw = NULL


# Records that say nothing about tokens; the last nine are the bare items of 2025.
QUIET = frozenset(
    {
        "response_item",
        "world_state",
        "dynamic_tools_updated",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "security_risk_score",
        "realtime_item",
        "custom_tool_call",
        "custom_tool_call_output",
        "function_call",
        "function_call_output",
        "ghost_snapshot",
        "local_shell_call",
        "message",
        "reasoning",
        "web_search_call",
    }
)

# Kinds of event_msg that say nothing about tokens.
QUIET_EVENTS = frozenset(
    {
        "agent_message",
        "agent_reasoning",
        "agent_reasoning_raw_content",
        "agent_reasoning_section_break",
        "background_event",
        "collab_agent_interaction_end",
        "collab_agent_spawn_end",
        "collab_close_end",
        "collab_resume_end",
        "collab_waiting_end",
        "context_compacted",
        "deprecation_notice",
        "dynamic_tool_call_request",
        "dynamic_tool_call_response",
        "entered_review_mode",
        "error",
        "exec_command_begin",
        "exec_command_end",
        "exited_review_mode",
        "guardian_assessment",
        "image_generation_end",
        "item_completed",
        "item_started",
        "mcp_tool_call_begin",
        "mcp_tool_call_end",
        "patch_apply_begin",
        "patch_apply_end",
        "plan_update",
        "stream_error",
        "sub_agent_activity",
        "thread_goal_updated",
        "turn_diff",
        "undo_completed",
        "undo_started",
        "view_image_tool_call",
        "warning",
        "web_search_begin",
        "web_search_end",
    }
)

# Lines of `exec --json` that say nothing about tokens.
QUIET_LINES = frozenset(
    {
        "turn.started",
        "turn.failed",
        "item.started",
        "item.updated",
        "item.completed",
        "error",
    }
)
