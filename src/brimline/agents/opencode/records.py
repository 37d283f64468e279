"""The parts of opencode's records that have figures; everything else in them is skipped."""

import msgspec


class Cache(msgspec.Struct, frozen=True, gc=False):
    read: int
    write: int


class OpencodeTokens(msgspec.Struct, frozen=True, gc=False):
    """The usage of one call, in disjoint counts; in old versions `output` includes `reasoning`."""

    input: int
    output: int
    reasoning: int
    cache: Cache
    total: int | None = None


class Object(msgspec.Struct, frozen=True, gc=False):
    """An object of which only the presence counts."""


class MessageError(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class Times(msgspec.Struct, frozen=True, gc=False):
    """Milliseconds since the epoch."""

    created: float | None = None
    updated: float | None = None
    completed: float | None = None


NEVER = Times()
CHATGPT_PLAN = "chatgpt"  # our name of its provider `openai` with a ChatGPT plan
ABORTED = "MessageAbortedError"  # the name of the error of a reply that the user interrupted


class OpencodeMessage(msgspec.Struct, frozen=True, gc=False):
    """One message; `summary` is true on a compaction's reply, and an object on a prompt."""

    role: str
    id: str | None = None
    parent: str | None = msgspec.field(default=None, name="parentID")
    model: str | None = msgspec.field(default=None, name="modelID")
    provider: str | None = msgspec.field(default=None, name="providerID")
    cost: float | None = None
    tokens: OpencodeTokens | None = None
    summary: bool | Object | None = None
    finish: str | None = None
    error: MessageError | None = None
    time: Times = NEVER

    @property
    def compacts(self) -> bool:
        """Whether this is the reply of a compaction."""
        return self.role == "assistant" and self.summary is True

    @property
    def compacted(self) -> bool:
        """Whether that compaction succeeded, by the same condition as the client's."""
        ended = self.finish is not None or self.time.completed is not None
        return self.compacts and ended and self.error is None

    @property
    def is_left_out(self) -> bool:
        """Whether later prompts do not have it: it failed; an aborted one stays."""
        return self.error is not None and self.error.name != ABORTED


class ToolTimes(msgspec.Struct, frozen=True, gc=False):
    """When a tool's result was pruned from the context, in milliseconds since the epoch."""

    pruned: float | None = msgspec.field(default=None, name="compacted")


class ToolState(msgspec.Struct, frozen=True, gc=False):
    time: ToolTimes | None = None


class OpencodePart(msgspec.Struct, frozen=True, gc=False):
    """A part of a message: a tool has a `state`, a step-finish `tokens` and `cost`.

    A compaction has the others; `kept_from` is the first of the messages that it keeps.
    """

    type: str
    id: str | None = None
    tokens: OpencodeTokens | None = None
    cost: float | None = None
    auto: bool | None = None
    overflow: bool = False
    kept_from: str | None = msgspec.field(default=None, name="tail_start_id")
    state: ToolState | None = None


class Revert(msgspec.Struct, frozen=True):
    """The message from which on the conversation is undone."""

    message: str = msgspec.field(name="messageID")


class SessionInfo(msgspec.Struct, frozen=True):
    """A session; only the database has a `branch`: that of the workspace it was started in."""

    id: str
    parent: str | None = msgspec.field(default=None, name="parentID")
    directory: str | None = None
    title: str | None = None
    version: str | None = None
    time: Times = NEVER
    revert: Revert | None = None
    branch: str | None = None


class OpencodeEntry(msgspec.Struct, frozen=True):
    """A message and its parts, as `opencode export` prints them."""

    info: OpencodeMessage
    parts: list[OpencodePart]


class Export(msgspec.Struct, frozen=True):
    """What `opencode export` prints; each message is decoded on its own."""

    info: SessionInfo
    messages: list[msgspec.Raw]


class StreamMetadata(msgspec.Struct, frozen=True):
    compaction_continue: bool = False


class StreamPart(msgspec.Struct, frozen=True):
    """The part of a message that a line of the stream carries."""

    id: str | None = None
    message: str | None = msgspec.field(default=None, name="messageID")
    tokens: OpencodeTokens | None = None
    cost: float | None = None
    metadata: StreamMetadata | None = None


class OpencodeStreamLine(msgspec.Struct, frozen=True):
    """One line of `run --format json`."""

    type: str
    session: str | None = msgspec.field(default=None, name="sessionID")
    timestamp: float | None = None
    part: msgspec.Raw = msgspec.Raw(b"{}")


class OpencodeHead(msgspec.Struct, frozen=True):
    """A first line, to recognise the agent."""

    type: str | None = None
    session: str | None = msgspec.field(default=None, name="sessionID")
    part: msgspec.Raw = msgspec.Raw(b"{}")


STREAM_KINDS = frozenset(
    {"error", "reasoning", "step_finish", "step_start", "text", "tool_use"},
)
