"""The content of Qwen Code's chats, and of its `--output-format stream-json` output."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from brimline.agents.content import (
    AddedText,
    ErrorText,
    KeptContent,
    Piece,
    Reasoning,
    ReplyText,
    RunOutcome,
    SummaryText,
    TodoList,
    ToolCall,
    ToolResult,
    UserText,
)
from brimline.agents.genai_content import ContentPart, is_ok, parts_of, read_prompt
from brimline.agents.tools import ToolNames, server_of
from brimline.agents.transcripts.source import parse_time
from brimline.files.foreign_json import ABSENT, JsonDecoder

TOOLS = ToolNames(
    commands=frozenset({"run_shell_command"}),
    edits=frozenset({"edit", "notebook_edit", "write_file"}),
    todos=frozenset({"todo_write"}),
    reads=frozenset(
        {"glob", "grep_search", "list_directory", "read_file", "read_many_files", "web_fetch"}
    ),
    subagents=frozenset({"agent", "task"}),
)
_HOOK_TEXT = re.compile(r"\s*<qwen:[a-z-]+-context>")
_CLIENT_TEXT = re.compile(r"\s*<(system-reminder|task-notification)>")

# Kinds of `user` records that the client writes itself.
CLIENT_PROMPTS = frozenset({"cron", "goal_runtime", "notification"})


class _Message(msgspec.Struct, frozen=True):
    parts: msgspec.Raw = ABSENT


class _ResultStatus(msgspec.Struct, frozen=True):
    status: str | None = None


class _Kept(msgspec.Struct, frozen=True):
    role: str = ""
    parts: msgspec.Raw = ABSENT


class _Payload(msgspec.Struct, frozen=True):
    history: list[_Kept] = msgspec.field(default_factory=list[_Kept], name="compressedHistory")


class _QwenContent(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    subtype: str | None = None
    timestamp: str | None = None
    message: _Message = _Message()
    tool_call_result: _ResultStatus = _ResultStatus()
    system_payload: msgspec.Raw = ABSENT


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = ABSENT


class _LineMessage(msgspec.Struct, frozen=True):
    content: list[_Block] | str = ""


class _LineError(msgspec.Struct, frozen=True):
    message: str = ""


class _QwenLine(msgspec.Struct, frozen=True):
    type: str
    parent_tool_use_id: str | None = None
    message: _LineMessage | None = None
    is_error: bool | None = None
    num_turns: int | None = None
    error: _LineError | None = None


_record = JsonDecoder(_QwenContent)
_payload = JsonDecoder(_Payload)
_line = JsonDecoder(_QwenLine)


class QwenContent:
    """Reads a chat as it was written; a compression lists all that it leaves in the context.

    Reasoning is not sent again (0.24.4).
    """

    usage_follows_reply = False
    resends_reasoning = False
    silent_prefixes = ()
    outcome_marks = (b'"result"',)

    def read_record(self, record: bytes) -> Iterator[Piece]:
        """Yield the pieces of one record."""
        entry = _record.decode(record)
        at = parse_time(entry.timestamp)
        match entry.type:
            case "user":
                is_client = entry.subtype in CLIENT_PROMPTS
                yield from read_prompt(
                    entry.message.parts, at, _read_client_text if is_client else _read_added
                )
            case "tool_result":
                status = entry.tool_call_result.status
                for piece in read_prompt(entry.message.parts, at, _read_added):
                    yield _with_status(piece, status)
            case "assistant":
                yield from _read_reply(parts_of(entry.message.parts), at)
            case "system" if entry.subtype == "chat_compression":
                history = _payload.decode(entry.system_payload).history
                yield KeptContent(tuple(_read_kept(history)))
            case _:
                pass

    def read_line(self, line: bytes) -> Iterator[Piece]:
        """Yield the pieces of one stream line."""
        entry = _line.decode(line)
        content = entry.message.content if entry.message else ""
        if entry.type == "assistant" and isinstance(content, list):
            for block in content:
                if block.type == "text":
                    yield ReplyText(block.text)
                elif block.type == "tool_use":
                    yield from _read_call(block.name, block.id, block.input)
        elif entry.type == "result":
            if entry.error:
                yield ErrorText(entry.error.message)
            yield RunOutcome(turns=entry.num_turns, failed=entry.is_error)


def _with_status(piece: Piece, status: str | None) -> Piece:
    if not isinstance(piece, ToolResult):
        return piece
    return msgspec.structs.replace(piece, ok=is_ok(status, piece.output))


def _read_added(text: str, at: float | None) -> Iterator[AddedText]:
    """Yield a text that the client or a hook wrote."""
    if _HOOK_TEXT.match(text):
        yield AddedText("hook", "hook", text, at)
    elif _CLIENT_TEXT.match(text):
        yield from _read_client_text(text, at)


def _read_client_text(text: str, at: float | None) -> Iterator[AddedText]:
    yield AddedText("client", "Qwen Code", text, at)


def _read_reply(parts: Sequence[ContentPart], at: float | None) -> Iterator[Piece]:
    for part in parts:
        if part.text:
            yield Reasoning(part.text, at) if part.thought else ReplyText(part.text, at)
        if (call := part.function_call) is not None:
            yield from _read_call(call.name, call.id, call.args, at)


def _read_call(
    tool: str, id: str, arguments: msgspec.Raw, at: float | None = None
) -> Iterator[ToolCall | TodoList]:
    return TOOLS.read_call(tool, id, arguments, at, server_of(tool))


def _read_kept(history: "list[_Kept]") -> Iterator[Piece]:
    """Yield what a compression kept: its summary, then copies of the last messages."""
    for place, message in enumerate(history):
        if message.role == "model":
            yield from _read_reply(parts_of(message.parts), None)
            continue
        for piece in read_prompt(message.parts, None, _read_added):
            if place == 0 and isinstance(piece, UserText):
                yield SummaryText(piece.text)
            else:
                yield piece


CONTENT_READER = QwenContent
