"""The content of Goose's messages, and of its `--output-format stream-json` output."""

import re
from collections.abc import Iterator

import msgspec

from brimline.agents.content import (
    AddedText,
    Images,
    KeptContent,
    Piece,
    Reasoning,
    ReplyText,
    SummaryText,
    ToolResult,
    UserText,
    text_of,
)
from brimline.agents.tools import ToolNames
from brimline.files.foreign_json import ABSENT, JsonDecoder

TOOLS = ToolNames(
    commands=frozenset({"shell"}),
    edits=frozenset({"edit", "write"}),
    todos=frozenset(),
    reads=frozenset({"analyze", "load", "read_image", "tree"}),
    subagents=frozenset({"delegate"}),
    skills=frozenset({"load_skill"}),
)
OWN_EXTENSIONS = frozenset({"apps", "extensionmanager"})  # others are MCP servers
_TASK = re.compile(r"\ASubagent ID: \S+\n\n")  # before the task of a subagent


class _CalledTool(msgspec.Struct, frozen=True):
    name: str = ""
    arguments: msgspec.Raw = ABSENT


class _ResultContent(msgspec.Struct, frozen=True, rename="camel"):
    content: msgspec.Raw = ABSENT
    is_error: bool = False


class _CallState(msgspec.Struct, frozen=True):
    value: _CalledTool = _CalledTool()


class _ResultState(msgspec.Struct, frozen=True):
    status: str = ""
    value: _ResultContent = _ResultContent()
    error: str = ""


class _Block(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    id: str = ""
    text: str = ""
    thinking: str = ""
    tool_call: _CallState = _CallState()
    tool_result: _ResultState = _ResultState()


class _Visibility(msgspec.Struct, frozen=True, rename="camel"):
    user_visible: bool = True
    turn_context: bool = False


class _GooseMessage(msgspec.Struct, frozen=True):
    role: str = ""
    created: float | None = None
    summary: bool = False
    metadata: _Visibility = _Visibility()
    content: list[_Block] = []


class _GooseContentLine(msgspec.Struct, frozen=True):
    type: str = ""
    message: _GooseMessage | None = None


_message = JsonDecoder(_GooseMessage)
_line = JsonDecoder(_GooseContentLine)


class GooseContent:
    """Reads a session's messages; a compaction keeps its summary, and repeats the last prompt."""

    usage_follows_reply = False
    resends_reasoning = True
    silent_prefixes = ()
    outcome_marks = ()

    def read_record(self, record: bytes) -> Iterator[Piece]:
        """Yield the pieces of one message."""
        message = _message.decode(record)
        if message.summary:
            text = "\n".join(block.text for block in message.content if block.text)
            yield KeptContent((SummaryText(text, message.created),))
        else:
            yield from _read_blocks(message)

    def read_line(self, line: bytes) -> Iterator[Piece]:
        """Yield the pieces of one stream line."""
        entry = _line.decode(line)
        if entry.type == "message" and entry.message is not None:
            yield from _read_blocks(entry.message)


def _read_blocks(message: _GooseMessage) -> Iterator[Piece]:
    at = message.created
    for block in message.content:
        match block.type:
            case "text" if not message.metadata.user_visible:
                kind = "turn context" if message.metadata.turn_context else "compaction"
                yield AddedText("client", kind, block.text, at)
            case "text" if message.role == "user":
                yield UserText(_TASK.sub("", block.text), at)
            case "text":
                yield ReplyText(block.text, at)
            case "thinking":
                yield Reasoning(block.thinking, at)
            case "image":
                yield Images(1, at)
            case "toolRequest":
                call = block.tool_call.value
                yield from TOOLS.read_call(
                    call.name, block.id, call.arguments, at, _server_of(call.name)
                )
            case "toolResponse":
                result = block.tool_result
                ok = result.status == "success" and not result.value.is_error
                output = text_of(result.value.content) or result.error
                yield ToolResult(block.id, ok, output, at=at)
            case _:
                pass


def _server_of(tool: str) -> str:
    """Return the MCP server of a tool, which Goose names `server__tool`."""
    server, mark, _ = tool.partition("__")
    return server if mark and server not in OWN_EXTENSIONS else ""


CONTENT_READER = GooseContent
