"""The content of Pi's sessions, and of its `--mode json` output."""

from collections.abc import Iterator

import msgspec

from brimline.agents.content import (
    ABSENT,
    ErrorText,
    Location,
    Piece,
    ReplyText,
    RunOutcome,
    ToolNames,
    ToolResult,
    UserText,
    text_of,
)
from brimline.transcripts.source import parse_time

TOOLS = ToolNames(
    commands=frozenset({"bash"}),
    edits=frozenset({"edit", "write"}),
    todos=frozenset(),
    reads=frozenset({"fetch_url", "find", "grep", "ls", "read", "web_search"}),
)
FAILURES = ("error", "aborted")


class _Cost(msgspec.Struct, frozen=True):
    total: float = 0.0


class _Usage(msgspec.Struct, frozen=True):
    cost: _Cost = _Cost()


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None
    id: str = ""
    name: str = ""
    arguments: msgspec.Raw = ABSENT


class _PiMessage(msgspec.Struct, frozen=True, rename="camel"):
    role: str | None = None
    content: msgspec.Raw = ABSENT
    tool_call_id: str = ""
    is_error: bool | None = None
    error_message: str | None = None
    stop_reason: str | None = None
    usage: _Usage = _Usage()


class _PiEntry(msgspec.Struct, frozen=True):
    type: str
    timestamp: str | float | None = None
    cwd: str | None = None
    message: msgspec.Raw = ABSENT


class _Result(msgspec.Struct, frozen=True):
    usage: _Usage | None = None


class _PiLine(msgspec.Struct, frozen=True):
    type: str
    message: _PiMessage | str | None = None
    result: _Result | str | None = None


_entry = msgspec.json.Decoder(_PiEntry)
_message = msgspec.json.Decoder(_PiMessage)
_blocks = msgspec.json.Decoder(str | list[_Block])
_line = msgspec.json.Decoder(_PiLine)


class PiContent:
    """Reads every branch of a session, also those that no longer count."""

    usage_follows_reply = False
    silent_prefixes = (b'{"type":"tool_execution_', b'{"type":"turn_', b'{"type":"agent_')
    outcome_marks = (b'"type":"message_end"', b'"type":"compaction_end"')

    def read_record(self, record: bytes) -> Iterator[Piece]:
        entry = _entry.decode(record)
        at = parse_time(entry.timestamp) if isinstance(entry.timestamp, str) else None
        yield Location(entry.cwd)
        if entry.type != "message" or not entry.message:
            return
        message = _message.decode(entry.message)
        match message.role:
            case "user":
                yield UserText(text_of(message.content), at)
            case "assistant":
                yield from _reply(message, at)
            case "toolResult":
                text = text_of(message.content)
                yield ToolResult(message.tool_call_id, not message.is_error, text, at=at)
            case _:
                pass

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


def _reply(message: _PiMessage, at: float | None) -> Iterator[Piece]:
    blocks = _blocks.decode(message.content) if message.content else ""
    if isinstance(blocks, str):
        blocks = [_Block("text", blocks)]
    for block in blocks:
        if block.type == "text":
            yield ReplyText(block.text or "", at)
        elif block.type == "toolCall":
            yield from TOOLS.read_call(block.name, block.id, block.arguments, at)
    if message.error_message:
        yield ErrorText(message.error_message, at)


CONTENT_READER = PiContent
