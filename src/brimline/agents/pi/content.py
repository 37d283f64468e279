"""The content of Pi's sessions, and of its `--mode json` output."""

import re
from collections.abc import Iterator

import msgspec

from brimline.agents.content import (
    AddedText,
    ErrorText,
    Images,
    KeptContent,
    Location,
    Piece,
    Reasoning,
    ReplyText,
    RunOutcome,
    SummaryText,
    SystemPrompt,
    ToolResult,
    UserText,
    images_in,
    text_of,
)
from brimline.agents.tools import ToolNames, read_tool
from brimline.agents.transcripts.source import parse_time
from brimline.files.foreign_json import ABSENT, JsonDecoder

TOOLS = ToolNames(
    commands=frozenset({"bash"}),
    edits=frozenset({"edit", "write"}),
    todos=frozenset(),
    reads=frozenset({"fetch_url", "find", "grep", "ls", "read", "web_search"}),
    subagents=frozenset({"subagent", "task"}),
)
FAILURES = ("error", "aborted")
IMAGE_OMITTED = "[Current model does not support images."  # though the result is recorded with it

MEMORY_SECTION = "project_context"
_MEMORY_FILE = re.compile(
    r'<project_instructions path="([^"\n]*)">\n(.*?)</project_instructions>', re.DOTALL
)


class _Cost(msgspec.Struct, frozen=True):
    total: float = 0.0


class _Usage(msgspec.Struct, frozen=True):
    cost: _Cost = _Cost()


class _PiBlock(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str = ""
    name: str = ""
    arguments: msgspec.Raw = ABSENT


class _PiMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message; the user's own commands have `command` and `output`.

    `sections` and `tools_added` are the system prompt, which 0.87 records.
    """

    role: str | None = None
    content: msgspec.Raw = ABSENT
    tool_call_id: str = ""
    is_error: bool | None = None
    error_message: str | None = None
    stop_reason: str | None = None
    usage: _Usage = _Usage()
    sections: dict[str, str] = {}
    tools_added: list[msgspec.Raw] = []
    command: str = ""
    output: str = ""
    exclude_from_context: bool = False
    custom_type: str = "message"


class _PiEntry(msgspec.Struct, frozen=True, rename="camel"):
    """An entry; version 1 names the first that a compaction keeps by its index."""

    type: str
    id: str | None = None
    timestamp: str | float | None = None
    cwd: str | None = None
    message: msgspec.Raw = ABSENT
    summary: str = ""
    first_kept_entry_id: str | None = None
    first_kept_entry_index: int | None = None
    system_message: _PiMessage | None = None
    content: msgspec.Raw = ABSENT
    custom_type: str = "message"


class _Result(msgspec.Struct, frozen=True):
    usage: _Usage | None = None


class _PiLine(msgspec.Struct, frozen=True):
    type: str
    message: _PiMessage | str | None = None
    result: _Result | str | None = None


_entry = JsonDecoder(_PiEntry)
_message = JsonDecoder(_PiMessage)
_blocks = JsonDecoder(str | list[_PiBlock])
_line = JsonDecoder(_PiLine)


class PiContent:
    """Reads every branch of a session, also those that no longer count."""

    usage_follows_reply = False
    resends_reasoning = True
    silent_prefixes = (b'{"type":"tool_execution_', b'{"type":"turn_', b'{"type":"agent_')
    outcome_marks = (b'"message_end"', b'"compaction_end"')

    def __init__(self) -> None:
        self._records = 0
        self._places: dict[str, int] = {}  # of the entries, by their ids

    def read_record(self, record: bytes) -> Iterator[Piece]:
        self._records += 1
        entry = _entry.decode(record)
        at = parse_time(entry.timestamp)
        if entry.id is not None:
            self._places[entry.id] = self._records
        yield Location(entry.cwd)
        match entry.type:
            case "message" if entry.message:
                yield from _read_message(_message.decode(entry.message), at)
            case "custom_message":
                yield AddedText("hook", entry.custom_type, text_of(entry.content), at)
            case "compaction":
                yield KeptContent(records=self._count_kept(entry))
                if entry.system_message is not None:
                    yield from _system_prompt(entry.system_message, at)
                yield SummaryText(entry.summary, at)
            case "branch_summary":
                yield SummaryText(entry.summary, at)
            case _:
                pass

    def _count_kept(self, entry: _PiEntry) -> int:
        """How many of the records before a compaction stay in the context."""
        first = self._places.get(entry.first_kept_entry_id or "")
        if entry.first_kept_entry_index is not None:
            first = entry.first_kept_entry_index + 1
        return 0 if first is None else max(0, self._records - first)

    def read_line(self, line: bytes) -> Iterator[Piece]:
        match _line.decode(line):
            case _PiLine("compaction_end", result=_Result(_Usage(cost))):
                yield RunOutcome(cost=cost.total)
            case _PiLine("message_end", _PiMessage("assistant") as message):
                yield from _reply(message, None)
                failed = message.stop_reason in FAILURES
                yield RunOutcome(cost=message.usage.cost.total, failed=failed)
            case _:
                pass


def _read_message(message: _PiMessage, at: float | None) -> Iterator[Piece]:
    text = "" if message.role == "assistant" else text_of(message.content)
    match message.role:
        case "user":
            yield UserText(text, at)
            if images := images_in(message.content):
                yield Images(images, at)
        case "assistant":
            yield from _reply(message, at)
        case "toolResult":
            images = 0 if IMAGE_OMITTED in text else images_in(message.content)
            ok = not message.is_error
            yield ToolResult(message.tool_call_id, ok, text, at=at, images=images)
        case "system":
            yield from _system_prompt(message, at)
        case "bashExecution" if not message.exclude_from_context:
            output = f"{message.command}\n{message.output}"
            yield AddedText("user", f"!{message.command}", output, at)
        case "custom" | "hookMessage":
            yield AddedText("hook", message.custom_type, text, at)
        case "developer":
            yield AddedText("client", "developer message", text, at)
        case _:
            pass


def _system_prompt(message: _PiMessage, at: float | None) -> Iterator[Piece]:
    """Yield the memory files, and what else a system prompt holds."""
    for match in _MEMORY_FILE.finditer(message.sections.get(MEMORY_SECTION, "")):
        path, text = match.groups()
        yield AddedText("memory", path, text, at)
    texts = [text for name, text in message.sections.items() if name != MEMORY_SECTION]
    prompt = AddedText("tools", "system prompt", "\n".join(texts), kind="system prompt")
    yield SystemPrompt((prompt, *map(read_tool, message.tools_added)))


def _reply(message: _PiMessage, at: float | None) -> Iterator[Piece]:
    blocks = _blocks.decode(message.content) if message.content else ""
    if isinstance(blocks, str):
        blocks = [_PiBlock("text", blocks)]
    for block in blocks:
        if block.type == "text":
            yield ReplyText(block.text or "", at)
        elif block.type == "thinking":
            yield Reasoning(block.thinking or "", at)
        elif block.type == "toolCall":
            yield from TOOLS.read_call(block.name, block.id, block.arguments, at)
    if message.error_message:
        yield ErrorText(message.error_message, at)


CONTENT_READER = PiContent
