"""The parts of Copilot CLI's events that have figures; everything else in them is skipped."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import msgspec

from brimline.context.events import MAIN, Trigger
from brimline.context.usage import Usage, from_subset
from brimline.files.foreign_json import ABSENT

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class CopilotEvent(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One line of a session's file or of the stream; `agent_id` is a subagent's."""

    type: str
    timestamp: str | None = None
    agent_id: str | None = None
    data: msgspec.Raw = ABSENT

    @property
    def thread(self) -> str:
        return self.agent_id or MAIN


class CopilotHead(msgspec.Struct, frozen=True, rename="camel"):
    """A line, to recognise the agent; only the stream has events that are `ephemeral`."""

    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    parent_id: str | msgspec.UnsetType | None = msgspec.UNSET  # null in the first line
    data: msgspec.Raw = ABSENT
    ephemeral: bool = False
    session_id: str | None = None
    exit_code: int | None = None


class WorkingFolder(msgspec.Struct, frozen=True):
    """Where the agent works."""

    cwd: str | None = None
    branch: str | None = None


class SessionData(msgspec.Struct, frozen=True, rename="camel"):
    """`session.start` and `session.resume`; the latter has neither id nor version."""

    session_id: str | None = None
    copilot_version: str | None = None
    reasoning_effort: str | None = None
    context: WorkingFolder = WorkingFolder()


class CopilotTokens(msgspec.Struct, frozen=True, rename="camel"):
    """Tokens of one call, or of a compaction; `input_tokens` includes the cache."""

    input_tokens: Count
    output_tokens: Count
    cache_read_tokens: Count = 0
    cache_write_tokens: Count = 0
    reasoning_tokens: Count | None = None
    model: str | None = None

    def usage(self) -> Usage:
        return from_subset(
            self.input_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
            self.output_tokens,
            self.reasoning_tokens,
        )


class Accounting(msgspec.Struct, frozen=True, rename="camel"):
    """The client's own id of a call, if the provider gives none."""

    usage_id: str | None = None


class CopilotCall(CopilotTokens, frozen=True, rename="camel"):
    """One call; `max_prompt_tokens` is the window of the prompt."""

    api_call_id: str | None = None
    accounting: Accounting = Accounting()
    interaction_type: str | None = None
    is_byok: bool = False
    max_prompt_tokens: Count | None = None
    max_output_tokens: Count | None = None
    reasoning_effort: str | None = None


class UsageRecord(msgspec.Struct, frozen=True):
    """`session.usage_record`."""

    usage: CopilotCall


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """`assistant.message`: the call that it comes from."""

    api_call_id: str | None = None


class CompactionStart(msgspec.Struct, frozen=True, rename="camel"):
    """`session.compaction_start`; `current_tokens` is what the client compared with its limit."""

    current_tokens: Count | None = None
    trigger: str | None = None


class CompactionComplete(msgspec.Struct, frozen=True, rename="camel"):
    """`session.compaction_complete`: its own cost, which is in no usage record.

    Its tokens before and after are estimates of the conversation alone: 11,986 when 162,414 were
    sent.
    """

    success: bool
    outcome: str | None = None
    compaction_attempt_id: str | None = None
    compaction_tokens_used: CopilotTokens | None = None
    trigger: str | None = None
    summary_content: str | None = None

    @property
    def is_applied(self) -> bool:
        return self.success and self.outcome in (None, "applied")


# Compactions for another reason than the size show no limit: a switch of models, memory pressure.
COMPACTION_TRIGGERS: Mapping[str | None, Trigger] = {
    "threshold": "auto",
    "context_limit_retry": "auto",
    "manual": "manual",
}
OVERFLOW_TRIGGER = "context_limit_retry"  # the API had refused the prompt

# Calls beside the conversation, and the compaction's, whose cost its end reports.
BESIDE = frozenset({"conversation-background", "conversation-sampling"})
COMPACTION_CALL = "conversation-compaction"

# The kinds that are stored, by the schema of 1.0.102; others are ephemeral, in the stream alone.
_STORED = """
    abort assistant.fusion_phase_completed assistant.fusion_phase_failed assistant.message
    assistant.reasoning assistant.turn_end assistant.turn_start external_tool.requested hook.end
    hook.start human_response.recorded mcp.oauth_recovery_completed permission.assentDetected
    permission.carriedForward permission.completed permission.contextualAuthorization
    permission.messageAuthorization permission.messageAuthorizationDegraded
    permission.messageAuthorizationRead permission.requested session.auto_mode_resolved
    session.autopilot_objective_changed session.binary_asset session.canvas.recorded
    session.canvas.removed session.compaction_complete session.compaction_start
    session.completion_receipt session.context_changed session.context_cleared session.error
    session.fusion_change_checkpoint session.fusion_commit_started session.fusion_completed
    session.fusion_handoff session.fusion_resolved session.fusion_route_failed session.handoff
    session.info session.mode_changed session.mode_notice_delivered session.model_change
    session.model_deselected session.permission_recovery session.permissions_changed
    session.plan_changed session.remote_steerable_changed
    session.request_body_compression_disabled session.resume session.schedule_cancelled
    session.schedule_created session.schedule_rearmed session.session_limits_changed
    session.shutdown session.start session.task_complete session.truncation
    session.usage_checkpoint session.usage_record session.warning session.workspace_file_changed
    skill.context_delivered skill.context_delivered_ref skill.invoked skill.invoked_ref
    subagent.completed subagent.configured subagent.deselected subagent.failed subagent.selected
    subagent.started system.message system.notification tool.execution_complete
    tool.execution_start tool.user_requested tool_search.activated user.message
"""
STORED_KINDS = frozenset(_STORED.split())
STREAM_END = "result"
