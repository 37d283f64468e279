"""The parts of Gemini CLI's records that have figures; everything else in them is skipped."""

import msgspec

from brimline.files.foreign_json import ABSENT


class GeminiTokens(msgspec.Struct, frozen=True, gc=False):
    """The usage of one call; `input` includes `cached`, `output` does not include `thoughts`."""

    input: int
    output: int
    cached: int
    thoughts: int
    tool: int


class GeminiMessage(msgspec.Struct, frozen=True, gc=False):
    """One message in a list of messages; its content is only searched for what kind it is."""

    id: str
    type: str
    timestamp: str | None = None
    model: str | None = None
    tokens: GeminiTokens | None = None
    content: msgspec.Raw = ABSENT


class Patch(msgspec.Struct, frozen=True, rename="camel"):
    """What a `$set` changes; `messages` replaces the whole conversation."""

    last_updated: str | None = None
    summary: str | None = None
    messages: list[GeminiMessage] | None = None


class GeminiRecord(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a chat, or a whole older one: a header, a message, a patch or a rewind."""

    session_id: str | None = None
    project_hash: str | None = None
    start_time: str | None = None
    kind: str | None = None
    summary: str | None = None
    directories: list[str] | None = None
    messages: list[GeminiMessage] | None = None
    id: str | None = None
    type: str | None = None
    timestamp: str | None = None
    model: str | None = None
    tokens: GeminiTokens | None = None
    content: msgspec.Raw = ABSENT
    patch: Patch | None = msgspec.field(default=None, name="$set")
    rewind_to: str | None = msgspec.field(default=None, name="$rewindTo")


class ModelStats(msgspec.Struct, frozen=True):
    """What a run spent on one model; only `total_tokens` includes the thoughts."""

    total_tokens: int
    input_tokens: int
    cached: int = 0


class Stats(ModelStats, frozen=True):
    """What a run spent; older versions do not have it by model."""

    models: dict[str, ModelStats] | None = None


class GeminiStreamLine(msgspec.Struct, frozen=True):
    """One line of `--output-format stream-json`."""

    type: str
    timestamp: str | None = None
    session_id: str | None = None
    stats: Stats | None = None


class GeminiHead(msgspec.Struct, frozen=True):
    """A first line, to recognise the agent."""

    type: str | None = None
    session_id: str | None = None
    model: str | None = None


MESSAGE_KINDS = frozenset({"user", "gemini", "info", "error", "warning"})

STREAM_KINDS = frozenset({"init", "message", "tool_use", "tool_result", "error", "result"})
