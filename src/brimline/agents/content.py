"""Pieces of content, and what the agents' content readers share.

`agents/<name>/content.py` turns the records of a transcript and the lines of a stream into pieces.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Literal, Protocol, TypeAlias, TypeVar, cast

import msgspec

from brimline.agents.transcripts.source import MALFORMED
from brimline.context.usage import Usage
from brimline.files.foreign_json import JsonDecoder, decode_json, recover_objects
from brimline.redaction.names import is_secret_name

MAX_ENTRIES = 200  # a reader or a digest remembers this many of a kind
ToolKind: TypeAlias = Literal["command", "edit", "read", "subagent", "todo", "wait", "other"]
ToolState: TypeAlias = Literal["done", "cancelled", "running"]
AddedBy: TypeAlias = Literal["client", "hook", "memory", "subagent", "tools", "user"]
# What a client puts before the conversation, by what people can change of it. "system and tools" is
# all of it as one piece.
SystemKind: TypeAlias = Literal[
    "system and tools",
    "system prompt",
    "tools and unrecorded texts",
    "built-in tools",
    "MCP server",
    "memory file",
    "skill",
    "agent",
    "other",
]
DecodedT = TypeVar("DecodedT")


class UserText(msgspec.Struct, frozen=True):
    """What the user wrote, without what the client added."""

    text: str
    at: float | None = None


class ReplyText(msgspec.Struct, frozen=True):
    """What the agent replied.

    Some streams split a text: `is_partial` if more may follow, `is_continuation` if this follows
    the piece before without a break.
    """

    text: str
    at: float | None = None
    is_continuation: bool = False
    is_partial: bool = False


class Reasoning(msgspec.Struct, frozen=True):
    """What the agent reasoned, as far as the client records it: often nothing but that it did."""

    text: str = ""
    at: float | None = None


class AddedText(msgspec.Struct, frozen=True):
    """What came into the context besides words of the user and results of tools.

    `by` is who added it: the client, a hook, a memory file, a subagent, a list of tools or skills,
    or the user (a file). `name` is the hook's or file's name, `server` the MCP server whose tools
    it lists. `tokens_left` is what a client's own countdown tells the model. `head_bytes` is the
    size of what the client puts around the text. `kind` is what it is if the client put it there
    before the conversation; `names` are the tools, or the skill or agent, that it has. If it is not
    `is_recorded`, the transcript has no text of it.
    """

    by: AddedBy
    name: str
    text: str
    at: float | None = None
    server: str = ""
    tokens_left: int | None = None
    head_bytes: int = 0
    is_recorded: bool = True
    kind: SystemKind = "other"
    names: tuple[str, ...] = ()


class SystemPrompt(msgspec.Struct, frozen=True):
    """The whole system prompt with all tools, by what they are; it replaces the one before."""

    parts: tuple[AddedText, ...]


class SummaryText(msgspec.Struct, frozen=True):
    """The summary with which the context continues; None if the client records it encrypted."""

    text: str | None
    at: float | None = None


class Images(msgspec.Struct, frozen=True):
    """Images that the user gave."""

    count: int
    at: float | None = None


class ToolCall(msgspec.Struct, frozen=True):
    """A tool that the agent called; `files` are those that an edit changes, or that a read shows.

    `job` names the running command that a call of kind `wait` waits for. `arguments` are as the
    client wrote them, mostly JSON. `server` is the tool's MCP server, if the name alone does not
    tell it. `uses` names the skill or the agent that it starts.
    """

    tool: str
    call_id: str = ""
    kind: ToolKind = "other"
    command: str = ""
    files: tuple[str, ...] = ()
    job: str = ""
    arguments: msgspec.Raw | str = ""
    at: float | None = None
    server: str = ""
    uses: str = ""

    @property
    def summary(self) -> str:
        """The command, or the first text among the arguments that is no secret by its name."""
        if self.command:
            return self.command
        arguments = (_object.decode_or_none(self.arguments) or {}).items()
        texts = (each for name, each in arguments if not is_secret_name(name))
        return next((each for each in texts if isinstance(each, str)), "")


class ToolResult(msgspec.Struct, frozen=True):
    """The result of a call; `ok` is None if the client does not say. `images` is their number.

    A command that is still `running` has a name, `job`, by which later calls wait for it.
    `head_bytes` is the size of what the client puts before the output. A tool that `is_hosted` ran
    at the provider, within the call that asked for it: its output is not recorded.
    """

    call_id: str
    ok: bool | None = None
    output: str = ""
    state: ToolState = "done"
    job: str = ""
    at: float | None = None
    images: int = 0
    head_bytes: int = 0
    is_hosted: bool = False


class KeptContent(msgspec.Struct, frozen=True):
    """What a compaction left in the context: copies of content, or the `records` before it.

    `summary_call` is the id of the thread's call that wrote the summary, if that is known.
    """

    pieces: "tuple[Piece, ...]" = ()
    records: int = 0
    summary_call: str | None = None


class Todo(msgspec.Struct, frozen=True):
    """A to-do of the agent's own list."""

    text: str
    state: str = "pending"

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do for it."""
        return self.state in ("completed", "cancelled", "deleted", "done")

    @property
    def is_started(self) -> bool:
        """Whether the agent is working on it."""
        return self.state == "in_progress"


class TodoList(msgspec.Struct, frozen=True):
    """The agent's whole to-do list; it replaces the one before."""

    todos: tuple[Todo, ...]


class TodoChange(msgspec.Struct, frozen=True):
    """A to-do that was added, or that changed; None leaves its text or state."""

    key: str
    text: str | None = None
    state: str | None = None


class PlanText(msgspec.Struct, frozen=True):
    """A plan that the agent wrote."""

    text: str


class ErrorText(msgspec.Struct, frozen=True):
    """An error that the client reports: a failed call of the model, or a failed run."""

    text: str
    at: float | None = None


class ContextCleared(msgspec.Struct, frozen=True):
    """The user cleared the context: what came before no longer counts."""


class Location(msgspec.Struct, frozen=True):
    """Where the agent works; None leaves the folder or branch."""

    folder: str | None = None
    branch: str | None = None


class RunOutcome(msgspec.Struct, frozen=True):
    """What the client reports about a run, or about a part of it; `cost` is in USD."""

    cost: float | None = None
    turns: int | None = None
    failed: bool | None = None
    billed: Usage | None = None

    def plus(self, later: "RunOutcome") -> "RunOutcome":
        """Add figures up; the later `failed` counts."""
        return RunOutcome(
            cost=_sum(self.cost, later.cost),
            turns=_sum(self.turns, later.turns),
            failed=self.failed if later.failed is None else later.failed,
            billed=_sum(self.billed, later.billed),
        )


Piece: TypeAlias = (
    UserText
    | ReplyText
    | Reasoning
    | AddedText
    | SystemPrompt
    | SummaryText
    | Images
    | ToolCall
    | ToolResult
    | KeptContent
    | TodoList
    | TodoChange
    | PlanText
    | ErrorText
    | ContextCleared
    | Location
    | RunOutcome
)


class ContentReader(Protocol):
    """Reads the content of one thread of a transcript, or of one run of an agent.

    Both methods skip unknown kinds, and raise an error of `transcripts.source.MALFORMED` if
    the data has another shape than expected.
    """

    @property
    def usage_follows_reply(self) -> bool:
        """Whether a call's usage is recorded after its reply, and not with or before it."""
        ...

    @property
    def resends_reasoning(self) -> bool:
        """Whether later prompts have the reasoning of earlier calls."""
        ...

    @property
    def silent_prefixes(self) -> tuple[bytes, ...]:
        """A stream line that begins with one of these has neither pieces nor usage.

        They are the bulk of some streams: skipping them saves decoding.
        """
        ...

    @property
    def outcome_marks(self) -> tuple[bytes, ...]:
        """Every stream line that yields a RunOutcome contains one of these.

        They are single values: another serializer may put blanks around a colon.
        """
        ...

    def read_record(self, record: bytes) -> Iterator[Piece]:
        """Yield the pieces of one transcript record."""
        ...

    def read_line(self, line: bytes) -> Iterator[Piece]:
        """Yield the replies, tool calls, errors and outcomes of one stream line."""
        ...


def read_content(records: Iterable[bytes], reader: ContentReader) -> Iterator[Piece]:
    """Yield the pieces of a transcript; records that cannot be read are skipped."""
    for record in records:
        try:
            yield from reader.read_record(record)
        except MALFORMED:
            for part in recover_objects(record):
                with suppress(*MALFORMED):
                    yield from reader.read_record(part)


def read_stream_line(reader: ContentReader, line: bytes) -> list[Piece]:
    """The pieces of one stream line; none if it cannot be read."""
    try:
        return list(reader.read_line(line))
    except MALFORMED:
        return []


class ErrorMessage(msgspec.Struct, frozen=True):
    """An error on the wire."""

    message: str = ""


class TextPart(msgspec.Struct, frozen=True):
    """A part of a content that may have text, or name a tool that a search found."""

    type: str = ""
    text: str | None = None
    tool_name: str = ""


# An object is the result of a provider's own tool, which has no text.
Content: TypeAlias = str | list[TextPart] | dict[str, msgspec.Raw] | None
_content = JsonDecoder(Content)
_object = JsonDecoder(dict[str, object])


def text_of(content: msgspec.Raw) -> str:
    """The text of a content, which is a string or a list of parts."""
    return joined_text(_content.decode(content) if content else None)


def joined_text(content: Content) -> str:
    """The text of a content that is decoded."""
    if isinstance(content, list):
        return "\n".join(part.text for part in content if part.text)
    return content if isinstance(content, str) else ""


def images_in(content: msgspec.Raw) -> int:
    """The number of images among the parts of a content."""
    if b'"image"' not in bytes(content):
        return 0
    return count_images(_content.decode(content))


def count_images(content: Content) -> int:
    """The number of images in a content that is decoded."""
    return sum(part.type == "image" for part in content) if isinstance(content, list) else 0


def size_of(text: str) -> int:
    """Return the length in UTF-8 bytes, which tokens follow more closely than characters."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def strings_in(data: msgspec.Raw) -> Iterator[str]:
    """Yield every text inside a JSON value, without the keys."""
    values = [decode_json(data, object)] if data else []
    while values:  # not by recursion: newer versions of Python decode deeper than they can call
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            values += reversed(cast("list[object]", value))
        elif isinstance(value, dict):
            values += reversed(cast("dict[str, object]", value).values())


FigureT = TypeVar("FigureT", int, float, Usage)


def _sum(one: FigureT | None, other: FigureT | None) -> FigureT | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other
