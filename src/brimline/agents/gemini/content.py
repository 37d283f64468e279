"""The content of Gemini CLI's chats, and of its `--output-format stream-json` output."""

import re
from collections.abc import Iterator

import msgspec

from brimline.agents.content import (
    ABSENT,
    ErrorMessage,
    ErrorText,
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
    commands=frozenset({"run_shell_command"}),
    edits=frozenset({"edit", "replace", "write_file"}),
    todos=frozenset({"write_todos"}),
    reads=frozenset(
        {"glob", "google_web_search", "list_directory", "read_file", "read_many_files"}
        | {"save_memory", "search_file_content", "web_fetch"}
    ),
)
EXIT_CODE_TAIL_CHARS = 16_384  # the exit code is looked for in this much of an output's end

_CLIENT_TEXT = re.compile(r"\s*<[a-z_]+>\n|\s*This is the Gemini CLI\.")
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,10})", re.MULTILINE)


class _Output(msgspec.Struct, frozen=True):
    output: str | None = None
    error: str | None = None


class _Response(msgspec.Struct, frozen=True):
    response: _Output = _Output()


class _Result(msgspec.Struct, frozen=True):
    function: _Response = msgspec.field(default=_Response(), name="functionResponse")

    @property
    def text(self) -> str:
        return self.function.response.output or self.function.response.error or ""


class _Tool(msgspec.Struct, frozen=True):
    id: str = ""
    name: str = ""
    args: msgspec.Raw = ABSENT
    status: str | None = None
    result: list[_Result] | None = None


class _GeminiMessage(msgspec.Struct, frozen=True):
    type: str | None = None
    content: msgspec.Raw = ABSENT
    timestamp: str | None = None
    tools: list[_Tool] = msgspec.field(default_factory=list[_Tool], name="toolCalls")


class _GeminiLine(msgspec.Struct, frozen=True):
    type: str
    role: str | None = None
    content: str = ""
    delta: bool = False
    tool_name: str = ""
    tool_id: str = ""
    parameters: msgspec.Raw = ABSENT
    message: str = ""
    status: str | None = None
    error: ErrorMessage | None = None


_message = msgspec.json.Decoder(_GeminiMessage)
_line = msgspec.json.Decoder(_GeminiLine)


class GeminiContent:
    """Reads a chat as it was written, rewound messages too.

    A message is written again when its tools have answered.
    """

    usage_follows_reply = False
    silent_prefixes = ()
    outcome_marks = (b'"type":"result"',)

    def __init__(self) -> None:
        self._in_reply = False

    def read_record(self, record: bytes) -> Iterator[Piece]:
        """Yield the pieces of one message; the header and patches have none."""
        message = _message.decode(record)
        at = parse_time(message.timestamp)
        match message.type:
            case "user":
                text = text_of(message.content)
                if not _CLIENT_TEXT.match(text):
                    yield UserText(text, at)
            case "gemini":
                yield ReplyText(text_of(message.content), at)
                for tool in message.tools:
                    yield from TOOLS.read_call(tool.name, tool.id, tool.args, at)
                    output = "\n".join(result.text for result in tool.result or ())
                    yield ToolResult(tool.id, _is_ok(tool.status, output), output, at=at)
            case "error":
                yield ErrorText(text_of(message.content), at)
            case _:
                pass

    def read_line(self, line: bytes) -> Iterator[Piece]:
        """Yield the pieces of one stream line; any other line ends a reply that came in parts."""
        entry = _line.decode(line)
        is_reply = entry.type == "message" and entry.role == "assistant"
        is_continuation, self._in_reply = self._in_reply and entry.delta, is_reply
        if is_reply:
            yield ReplyText(entry.content, is_continuation=is_continuation, is_partial=entry.delta)
        elif entry.type == "tool_use":
            yield from TOOLS.read_call(entry.tool_name, entry.tool_id, entry.parameters, None)
        elif entry.type == "error":
            yield ErrorText(entry.message)
        elif entry.type == "result":
            if entry.error:
                yield ErrorText(entry.error.message)
            yield RunOutcome(failed=entry.status != "success")


def _is_ok(status: str | None, output: str) -> bool | None:
    """By the exit code: the shell tool has status success whatever the command's exit code was."""
    if code := _EXIT_CODE.search(output[-EXIT_CODE_TAIL_CHARS:]):
        return int(code[1]) == 0
    return None if status is None else status == "success"


CONTENT_READER = GeminiContent
