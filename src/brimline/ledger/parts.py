"""The parts of a context: what came in, how large it is, what it is called."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from brimline.agents.content import (
    AddedBy,
    AddedText,
    Images,
    Piece,
    Reasoning,
    ReplyText,
    SummaryText,
    ToolCall,
    ToolKind,
    ToolResult,
    UserText,
    server_of,
)
from brimline.bounded_dict import BoundedDict

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
CATEGORIES: tuple[Category, ...] = (
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
)
OUTPUTS = frozenset[Category]({"agent's words", "reasoning", "tool calls"})

MAX_OPEN_CALLS = 1_000  # tool calls that may still get a result
MAX_NAME_CHARS = 120

_CATEGORY_OF_ADDED: dict[AddedBy, Category] = {
    "client": "injected context",
    "hook": "injected context",
    "memory": "memory files",
    "tools": "system and tools",
    "user": "injected context",
}


class ContextPart(msgspec.Struct, frozen=True, gc=False):
    """One piece of content in a context.

    `what` is its name for people: a file, a command, a tool, a hook, the first words of a text.
    `size` is its length in UTF-8 bytes, `record` the number of its record in the transcript.
    `content` is equal for results with the same text.
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

    @property
    def is_output(self) -> bool:
        """Whether the model wrote it."""
        return self.category in OUTPUTS


class PartReader:
    """Turns the pieces of one thread into parts."""

    def __init__(self) -> None:
        self._calls = BoundedDict[str, ToolCall](MAX_OPEN_CALLS)
        self.restart()

    def restart(self) -> None:
        """Start a new context: some clients then record again what they keep of the old one."""
        self._called = BoundedDict[str, bool](MAX_OPEN_CALLS)
        self._answered = BoundedDict[str, bool](MAX_OPEN_CALLS)

    def read(self, piece: Piece, record: int) -> Iterator[ContextPart]:
        """Yield the parts of a piece; to-dos and others are a part of something else."""
        match piece:
            case UserText(text) if text:
                yield ContextPart("user words", _first_words(text), size_of(text), record)
            case ReplyText(text) if text:
                yield ContextPart("agent's words", _first_words(text), size_of(text), record)
            case Reasoning(text):
                yield ContextPart("reasoning", "reasoning", size_of(text), record)
            case AddedText(by, name, text) if text:
                category, size = _CATEGORY_OF_ADDED[by], size_of(text)
                yield ContextPart(category, name, size, record, server=piece.server)
            case SummaryText(text) if text:
                yield ContextPart("compaction summary", "summary", size_of(text), record)
            case Images(count) if count:
                yield ContextPart("images", "image", 0, record, count)
            case ToolCall():
                yield from self._call(piece, record)
            case ToolResult():
                yield from self._result(piece, record)
            case _:
                pass

    def _call(self, call: ToolCall, record: int) -> Iterator[ContextPart]:
        if call.call_id in self._called:  # some clients write a call again with its result
            return
        self._called[call.call_id] = True
        self._calls[call.call_id] = call
        size = len(bytes(call.arguments)) if isinstance(call.arguments, msgspec.Raw) else 0
        size = size or size_of(str(call.arguments)) or size_of(call.command)
        yield _tool_part("tool calls", call, size + len(call.tool), record)

    def _result(self, result: ToolResult, record: int) -> Iterator[ContextPart]:
        if result.call_id in self._answered:
            return
        self._answered[result.call_id] = True
        call = self._calls.get(result.call_id) or ToolCall("unknown tool")
        category: Category = "subagent results" if call.kind == "subagent" else "tool results"
        part = _tool_part(category, call, size_of(result.output), record)
        yield msgspec.structs.replace(part, content=hash(result.output))
        if result.images:
            yield ContextPart("images", part.what, 0, record, result.images, part.tool, part.server)


def _tool_part(category: Category, call: ToolCall, size: int, record: int) -> ContextPart:
    file = call.files[0] if call.files else ""
    name = file or call.command or call.summary
    arguments = call.arguments
    return ContextPart(
        category=category,
        what=_first_words(f"{call.tool} {name}" if name else call.tool),
        size=size,
        record=record,
        tool=call.tool,
        server=call.server or server_of(call.tool),
        tool_kind=call.kind,
        file=file,
        command=_first_words(call.command),
        arguments=hash(bytes(arguments) if isinstance(arguments, msgspec.Raw) else arguments),
    )


def size_of(text: str) -> int:
    """Return the length in UTF-8 bytes, which tokens follow more closely than characters."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _first_words(text: str) -> str:
    return " ".join(text[: 4 * MAX_NAME_CHARS].split())[:MAX_NAME_CHARS]
