"""The parts of Kimi Code's records that have figures; everything else in them is skipped."""

import msgspec

from brimline.context.usage import Usage
from brimline.files.foreign_json import ABSENT


class KimiUsage(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The usage of one call; its counts are disjoint."""

    input_other: int = 0
    input_cache_read: int = 0
    input_cache_creation: int = 0
    output: int = 0

    @property
    def usage(self) -> Usage:
        return Usage(
            self.input_other, self.input_cache_read, self.input_cache_creation, self.output
        )


class KimiEvent(msgspec.Struct, frozen=True, gc=False):
    """What happened within a step, in a record of its own."""

    type: str = ""
    uuid: str | None = None


class KimiRecord(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One line of a `wire.jsonl`; `kind` of a request is `loop`, or what chore it does."""

    type: str
    time: float | None = None
    agent_id: str | None = None
    kind: str | None = None
    model: str | None = None
    source: str | None = None
    usage_scope: str | None = None
    usage: KimiUsage | None = None
    event: msgspec.Raw = ABSENT
    title: str | None = None


class KimiHead(msgspec.Struct, frozen=True):
    """A line, to recognise the agent."""

    type: str | None = None
    role: str | None = None
    protocol_version: str | None = None
    session_id: str | None = None


# The first word of a kind; the client adds kinds to these groups.
WIRE_GROUPS = frozenset({
    "agent", "config", "context", "cron", "full_compaction", "goal", "llm", "mcp", "metadata",
    "micro_compaction", "permission", "plan", "plugin", "profile", "prompt", "runtime", "session",
    "skill", "subagent", "swarm", "task", "todo", "token_counting", "tools", "turn", "usage",
})  # fmt: skip

STREAM_ROLES = frozenset({"assistant", "meta", "tool", "user"})
