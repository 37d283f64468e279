"""The content of Cline CLI's messages, and of the file of a compaction."""

import re
from collections.abc import Iterator

import msgspec

from brimline.agents.content import (
    AddedText,
    KeptContent,
    Piece,
    Reasoning,
    ReplyText,
    RunOutcome,
    SummaryText,
    ToolCall,
    ToolResult,
    UserText,
    text_of,
)
from brimline.agents.tools import ToolNames, server_of
from brimline.agents.transcripts.source import parse_time
from brimline.files.foreign_json import ABSENT, JsonDecoder

SHELL = "run_commands"
TOOLS = ToolNames(
    commands=frozenset(),
    edits=frozenset({"apply_patch", "editor"}),
    todos=frozenset(),
    reads=frozenset({"fetch_web_content", "read_files", "search_codebase"}),
    subagents=frozenset({"spawn_agent"}),
    skills=frozenset({"skills"}),
)

_USER_INPUT = re.compile(r"<user_input[^<>]*>")
_USER_INPUT_END = "</user_input>"


class _ShellCommand(msgspec.Struct, frozen=True):
    """A command that the model gave with its arguments apart."""

    command: str = ""
    args: list[str] = []


class _Commands(msgspec.Struct, frozen=True):
    commands: list[str | _ShellCommand] = []

    @property
    def text(self) -> str:
        return "\n".join(
            each if isinstance(each, str) else " ".join((each.command, *each.args))
            for each in self.commands
        )


class _CommandResult(msgspec.Struct, frozen=True):
    """What one command of a call gave."""

    result: str = ""
    error: str = ""
    success: bool | None = None


class _ClineBlock(msgspec.Struct, frozen=True):
    type: str
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = ABSENT
    tool_use_id: str = ""
    content: msgspec.Raw = ABSENT
    is_error: bool | None = None


class _MessageKind(msgspec.Struct, frozen=True):
    kind: str | None = None


class _ClineContent(msgspec.Struct, frozen=True):
    role: str = ""
    content: list[_ClineBlock] | str = ""
    ts: float | None = None
    metadata: _MessageKind = _MessageKind()
    messages: "list[_ClineContent]" = []


class _StreamEvent(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    content_type: str = ""
    text: str = ""
    tool_name: str = ""
    tool_call_id: str = ""
    input: msgspec.Raw = ABSENT


class _ClineLine(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    event: _StreamEvent = _StreamEvent()
    finish_reason: str | None = None
    iterations: int | None = None


_entry = JsonDecoder(_ClineContent)
_commands = JsonDecoder(_Commands)
_results = JsonDecoder(list[_CommandResult])
_line = JsonDecoder(_ClineLine)


class ClineContent:
    """Reads a thread as it was written; a compaction lists all that it leaves in the context.

    Reasoning is not sent again (3.0.65, with an OpenAI-compatible provider).
    """

    usage_follows_reply = False
    resends_reasoning = False
    silent_prefixes = ()
    outcome_marks = (b'"run_result"',)

    def read_record(self, record: bytes) -> Iterator[Piece]:
        """Yield the pieces of one message, or of the file of a compaction."""
        entry = _entry.decode(record)
        if entry.messages:
            kept = [piece for message in entry.messages for piece in _read_message(message)]
            yield KeptContent(tuple(kept))
        else:
            yield from _read_message(entry)

    def read_line(self, line: bytes) -> Iterator[Piece]:
        """Yield the pieces of one stream line."""
        entry = _line.decode(line)
        match entry.event.type, entry.event.content_type:
            case "content_end", "text":
                yield ReplyText(entry.event.text)
            case "content_start", "tool":
                yield from _read_call(
                    entry.event.tool_name, entry.event.tool_call_id, entry.event.input
                )
            case _ if entry.type == "run_result":
                failed = entry.finish_reason != "completed"
                yield RunOutcome(turns=entry.iterations, failed=failed)
            case _:
                pass


def _read_message(message: _ClineContent) -> Iterator[Piece]:
    at = parse_time(message.ts)
    content = message.content
    blocks = [_ClineBlock("text", text=content)] if isinstance(content, str) else content
    for block in blocks:
        match block.type:
            case "text" if message.role == "assistant":
                yield ReplyText(block.text, at)
            case "text" if message.metadata.kind == "compaction_summary":
                yield SummaryText(block.text, at)
            case "text":
                yield from _read_prompt(block.text, at)
            case "thinking":
                yield Reasoning(block.thinking, at)
            case "tool_use":
                yield from _read_call(block.name, block.id, block.input, at)
            case "tool_result":
                yield _read_result(block, at)
            case _:
                pass


def _read_prompt(text: str, at: float | None) -> Iterator[Piece]:
    """Yield what the user wrote, and what the client wrote around it."""
    before, _, after = text.rpartition(_USER_INPUT_END)
    opening = _USER_INPUT.search(before)
    if opening is None:
        yield UserText(text, at)
        return
    yield UserText(before[opening.end() :], at)
    if added := (before[: opening.start()] + after).strip():
        yield AddedText("client", "Cline CLI", added, at)


def _read_call(
    tool: str, id: str, arguments: msgspec.Raw, at: float | None = None
) -> Iterator[Piece]:
    if tool == SHELL:
        command = (_commands.decode_or_none(arguments) or _Commands()).text
        yield ToolCall(tool, id, "command", command, arguments=arguments, at=at)
    else:
        yield from TOOLS.read_call(tool, id, arguments, at, server_of(tool))


def _read_result(block: _ClineBlock, at: float | None) -> ToolResult:
    """The result of a tool, which is a text, or a list with that of each command or file."""
    results = _results.decode_or_none(block.content) or []
    if any(each.success is not None for each in results):
        ok = all(each.success for each in results) and not block.is_error
        output = "\n".join(each.result or each.error for each in results)
    else:
        ok, output = not block.is_error, text_of(block.content)
    return ToolResult(block.tool_use_id, ok, output, at=at)


CONTENT_READER = ClineContent
