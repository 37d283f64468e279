"""The parts of a context: what came in, how large it is, what it is called."""

import re
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias, get_args

import msgspec

from brimline.agents.content import (
    AddedBy,
    AddedText,
    Images,
    Piece,
    Reasoning,
    ReplyText,
    SummaryText,
    SystemKind,
    SystemPrompt,
    ToolCall,
    ToolKind,
    ToolResult,
    UserText,
    size_of,
)
from brimline.agents.tools import server_of
from brimline.files.bounded_dict import BoundedDict
from brimline.redaction import redact, truncate_words

Category: TypeAlias = Literal[
    "system and tools",
    "memory files",
    "user words",
    "agent's words",
    "reasoning",
    "tool calls",
    "tool results",
    "images",
    "injected context",
    "subagent results",
    "compaction summary",
]
CATEGORIES: tuple[Category, ...] = get_args(Category)
OUTPUTS = frozenset[Category]({"agent's words", "reasoning", "tool calls"})

MAX_OPEN_CALLS = 1_000  # tool calls that may still get a result
MAX_NAME_CHARS = 120
MAX_EXCERPT_CHARS = 480  # more than is shown, so that a credential is not cut before redaction

Mask: TypeAlias = Callable[[str], str]  # redacts a text, or leaves it as it is

_CATEGORY_OF_ADDED: dict[AddedBy, Category] = {
    "client": "injected context",
    "hook": "injected context",
    "memory": "memory files",
    "subagent": "subagent results",
    "tools": "system and tools",
    "user": "injected context",
}


class ContextPart(msgspec.Struct, frozen=True, gc=False):
    """One piece of content in a context.

    `what` says what it is: a file, a command, a tool, a hook, the first words of a text. Its texts
    are those of the transcript: what is shown of them passes a `Mask`.
    `size` is its length in UTF-8 bytes, `record` the number of its record in the transcript.
    `content` is equal for results with the same text. `tokens_left` is what the client's countdown
    tells the model. `kind` and `names` are of what the client puts before the conversation, and of
    calls that use it. If it is not `is_recorded`, the transcript has no text of it: it takes what
    the other parts of its call cannot account for.
    """

    category: Category
    what: str
    size: int
    record: int = 0
    images: int = 0
    tool: str = ""
    server: str = ""
    tool_kind: ToolKind = "other"
    file: str = ""
    command: str = ""
    arguments: int = 0
    content: int = 0
    is_recorded: bool = True
    tokens_left: int | None = None
    kind: SystemKind | None = None
    names: tuple[str, ...] = ()

    def name(self, mask: Mask = redact) -> str:
        """Return its name for people; that of a file is not cut."""
        name = mask(self.what)
        return name if self.file else first_words(name, len(self.tool) + 1 + MAX_NAME_CHARS)

    @property
    def is_output(self) -> bool:
        """Whether the model wrote it."""
        return self.category in OUTPUTS

    @property
    def is_hosted(self) -> bool:
        """Whether it is the result of a tool that ran at the provider."""
        return not self.is_recorded and self.category == "tool results"


class PartReader:
    """Turns the pieces of one thread into parts."""

    def __init__(self) -> None:
        self.system_prompt: list[ContextPart] = []
        self._calls = BoundedDict[str, ContextPart](MAX_OPEN_CALLS)
        self.restart()

    def restart(self) -> None:
        """Start a new context: some clients then record again what they keep of the old one."""
        self._called = BoundedDict[str, bool](MAX_OPEN_CALLS)
        self._answered = BoundedDict[str, bool](MAX_OPEN_CALLS)

    def read(self, piece: Piece, record: int) -> Iterable[ContextPart]:
        """Return the parts of a piece; to-dos and others are a part of something else."""
        match piece:
            case ToolResult():
                return self._result(piece, record)
            case ToolCall():
                return self._call(piece, record)
            case ReplyText(text) if text:
                return (ContextPart("agent's words", _excerpt(text), size_of(text), record),)
            case UserText(text) if text:
                return (ContextPart("user words", _excerpt(text), size_of(text), record),)
            case Reasoning(text):
                return (ContextPart("reasoning", "reasoning", size_of(text), record),)
            case AddedText() if piece.text or piece.head_bytes or not piece.is_recorded:
                return (_added_part(piece, record),)
            case SystemPrompt(parts):
                known = (part for part in parts if part.text or not part.is_recorded)
                self.system_prompt = [_added_part(part, record) for part in known]
                return ()
            case SummaryText(None):
                return (ContextPart("compaction summary", "summary", 0, record, is_recorded=False),)
            case SummaryText(text) if text:
                return (ContextPart("compaction summary", "summary", size_of(text), record),)
            case Images(count) if count:
                return (ContextPart("images", "image", 0, record, count),)
            case _:
                return ()

    def read_kept(self, piece: Piece, record: int) -> Iterable[ContextPart]:
        """Return the parts of a piece that a new context keeps, also if it is there before."""
        if isinstance(piece, ToolCall):
            self._called.pop(piece.call_id, None)
        elif isinstance(piece, ToolResult):
            self._answered.pop(piece.call_id, None)
        return self.read(piece, record)

    def _call(self, call: ToolCall, record: int) -> Iterable[ContextPart]:
        is_repeated = call.call_id and call.call_id in self._called
        if is_repeated:  # some clients write a call again with its result
            return ()
        self._called[call.call_id] = True
        part = self._calls[call.call_id] = _tool_part(call, record)
        return (part,)

    def _result(self, result: ToolResult, record: int) -> Iterable[ContextPart]:
        if result.call_id and result.call_id in self._answered:
            return ()
        self._answered[result.call_id] = True
        call = self._calls.get(result.call_id, UNKNOWN_CALL)
        part = msgspec.structs.replace(
            call,
            category="subagent results" if call.tool_kind == "subagent" else "tool results",
            size=size_of(result.output) + result.head_bytes,
            record=record,
            content=hash(result.output),
            is_recorded=not result.is_hosted,
        )
        if not result.images:
            return (part,)
        image = ContextPart("images", call.what, 0, record, result.images, call.tool, call.server)
        return (part, image)


def _added_part(added: AddedText, record: int) -> ContextPart:
    category, size = _CATEGORY_OF_ADDED[added.by], size_of(added.text) + added.head_bytes
    file = added.name if added.by in ("memory", "user") else ""
    return ContextPart(
        category,
        added.name,
        size,
        record,
        server=added.server,
        file=file,
        is_recorded=added.is_recorded,
        tokens_left=added.tokens_left,
        kind=added.kind,
        names=added.names,
    )


UNKNOWN_CALL = ContextPart("tool calls", "unknown tool", 0, tool="unknown tool")


def _tool_part(call: ToolCall, record: int) -> ContextPart:
    arguments = call.arguments
    data = bytes(arguments) if isinstance(arguments, msgspec.Raw) else arguments.encode()
    file = call.files[0] if call.files else ""
    command = _excerpt(call.command)
    name = file or command or _excerpt(call.summary)
    return ContextPart(
        category="tool calls",
        what=f"{call.tool} {name}" if name else call.tool,
        size=len(call.tool) + (len(data) or size_of(call.command)),
        record=record,
        tool=call.tool,
        server=call.server or server_of(call.tool),
        tool_kind=call.kind,
        file=file,
        command=command,
        arguments=hash(data),
        kind=("agent" if call.kind == "subagent" else "skill") if call.uses else None,
        names=(call.uses,) if call.uses else (),
    )


def _excerpt(text: str) -> str:
    return truncate_words(text, MAX_EXCERPT_CHARS)


def plain_name(server: str) -> str:
    """Return a server's name as it is part of a tool's name."""
    return re.sub(r"[^\w-]", "_", server)


def first_words(text: str, most_chars: int = MAX_NAME_CHARS) -> str:
    """Return the beginning of a text on one line."""
    return " ".join(text.split())[:most_chars]
