"""The content of Gemini CLI's chats, and of its `--output-format stream-json` output."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from brimline.agents.content import (
    AddedText,
    ErrorMessage,
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
    text_of,
)
from brimline.agents.gemini.records import GeminiMessage
from brimline.agents.gemini.transcript import digest_summary, find_summary, usage_of
from brimline.agents.genai_content import (
    ContentPart,
    Function,
    is_ok,
    parts_of,
    read_prompt,
    read_results,
)
from brimline.agents.tagged_text import Elements
from brimline.agents.tools import ToolNames
from brimline.agents.transcripts.source import parse_time
from brimline.files.foreign_json import ABSENT, JsonDecoder

TOOLS = ToolNames(
    commands=frozenset({"run_shell_command"}),
    edits=frozenset({"edit", "replace", "write_file"}),
    todos=frozenset({"write_todos"}),
    reads=frozenset(
        {"glob", "google_web_search", "grep_search", "list_directory", "read_file"}
        | {"read_many_files", "save_memory", "search_file_content", "web_fetch"}
    ),
    subagents=frozenset({"codebase_investigator", "delegate_to_agent", "invoke_agent"}),
)

_CLIENT_TEXT = re.compile(
    r"\s*<[a-z_]+>\n|\s*This is the Gemini CLI\.|System: |Here is the user's editor context"
)
_HOOK_TEXT = re.compile(r"\s*<hook_context>")
_MEMORY_FILES = Elements(
    r"^--- Context from: (.+) ---\n", r"^--- End of Context from: (.+) ---$\n?"
)
_SERVER = re.compile(r"\((.+) MCP Server\)$")  # in the displayed name of a tool


class _CompletedCall(msgspec.Struct, frozen=True, rename="camel"):
    id: str = ""
    name: str = ""
    args: msgspec.Raw = ABSENT
    status: str | None = None
    result: list[ContentPart] | None = None
    display_name: str = ""

    @property
    def call(self) -> Iterator[ToolCall | TodoList]:
        server = _SERVER.search(self.display_name)
        function = Function(self.id, self.name, self.args)
        return _read_call(function, server[1] if server else "")


class _Thought(msgspec.Struct, frozen=True):
    subject: str = ""
    description: str = ""


class _ChatMessage(GeminiMessage, frozen=True):
    id: str = ""
    type: str = ""
    thoughts: list[_Thought] = msgspec.field(default_factory=list[_Thought])
    tools: list[_CompletedCall] = msgspec.field(
        default_factory=list[_CompletedCall], name="toolCalls"
    )


class _Patch(msgspec.Struct, frozen=True):
    messages: list[_ChatMessage] | None = None


class _ChatRecord(_ChatMessage, frozen=True):
    patch: _Patch | None = msgspec.field(default=None, name="$set")


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


_record = JsonDecoder(_ChatRecord)
_line = JsonDecoder(_GeminiLine)


class GeminiContent:
    """Reads a chat as it was written, rewound messages too.

    A message is written again when its tools have answered, and the whole conversation by a
    compression, and by a resume: that repeats the results of all tools (0.61.0).
    """

    usage_follows_reply = False
    resends_reasoning = False
    silent_prefixes = ()
    outcome_marks = (b'"result"',)

    def __init__(self) -> None:
        self._in_reply = False
        self._last_reply = ""
        self._calls: set[str] = set()  # replies with a usage
        self._copies = Counter[str]()  # of results in the prompt of the last call
        self._next_copies = Counter[str]()
        self._summary = b""

    def read_record(self, record: bytes) -> Iterator[Piece]:
        """Yield the pieces of one message, or of a conversation that is written anew."""
        message = _record.decode(record)
        if message.patch is not None:
            if message.patch.messages is not None:
                yield from self._read_conversation(message.patch.messages)
            return
        at = parse_time(message.timestamp)
        match message.type:
            case "user":
                for piece in read_prompt(message.content, at, _read_added):
                    if not (isinstance(piece, ToolResult) and self._copies[piece.call_id]):
                        yield piece
            case "gemini":
                yield from self._read_reply(message, at)
            case "error":
                yield ErrorText(text_of(message.content), at)
            case _:
                pass

    def _read_reply(self, message: _ChatMessage, at: float | None) -> Iterator[Piece]:
        if usage_of(message.tokens) is not None:
            self._calls.add(message.id)
            self._copies |= self._next_copies
        if not message.id or message.id != self._last_reply:
            for thought in message.thoughts:
                yield Reasoning(f"{thought.subject}\n{thought.description}", at)
            yield ReplyText(text_of(message.content), at)
        self._last_reply = message.id
        for tool in message.tools:
            for call in tool.call:
                yield msgspec.structs.replace(call, at=at) if isinstance(call, ToolCall) else call
            parts = tool.result or ()
            output = "\n".join(p.function_response.text for p in parts if p.function_response)
            images = sum(part.is_image for part in parts)
            ok = is_ok(tool.status, output)
            yield ToolResult(tool.id, ok, output, at=at, images=images)
            self._copies[tool.id] = 1

    def _read_conversation(self, messages: Sequence[_ChatMessage]) -> Iterator[KeptContent]:
        """Yield what a conversation has besides what the last call that it keeps had."""
        place = find_summary(messages)
        digest = self._summary if place is None else digest_summary(messages[place])
        is_compressed, self._summary = digest != self._summary, digest
        calls = [n for n, m in enumerate(messages) if m.type == "gemini" and m.id in self._calls]
        if calls and not is_compressed:
            kept, new = messages[: calls[-1] + 1], messages[calls[-1] + 1 :]
            yield KeptContent((*self._repeated_results(kept), *_read_kept(new)))
        elif is_compressed or not any(message.type == "gemini" for message in messages):
            yield KeptContent(tuple(_read_kept(messages, place)))

    def _repeated_results(self, messages: Sequence[_ChatMessage]) -> Iterator[Piece]:
        """Yield the results that the conversation has more often than the last call's prompt."""
        copies = Counter[str]()
        for message in messages:
            for result in read_results(parts_of(message.content), None):
                copies[result.call_id] += 1
                if copies[result.call_id] > max(1, self._copies[result.call_id]):
                    yield result
        self._next_copies = copies

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


def _read_added(text: str, at: float | None) -> Iterator[AddedText]:
    """Yield the parts of a text that the client or a hook wrote."""
    if _HOOK_TEXT.match(text):
        yield AddedText("hook", "hook", text, at)
    elif _CLIENT_TEXT.match(text):
        rest, memories = _MEMORY_FILES.split(text)
        for name, memory in memories:
            yield AddedText("memory", name, memory, at)
        yield AddedText("client", "Gemini CLI", rest, at)


def _read_kept(messages: Sequence[_ChatMessage], summary: int | None = None) -> Iterator[Piece]:
    """Yield the pieces of messages that are written anew."""
    for place, message in enumerate(messages):
        if place == summary:
            yield SummaryText(text_of(message.content))
        elif message.type == "user":
            yield from read_prompt(message.content, None, _read_added)
        elif message.type == "gemini":
            for part in parts_of(message.content):
                if part.text:
                    yield ReplyText(part.text)
                if part.function_call is not None:
                    yield from _read_call(part.function_call)


def _read_call(function: Function, server: str = "") -> Iterator[ToolCall | TodoList]:
    """Yield a call; tools of MCP servers are named `mcp_server_tool` (0.61.0)."""
    if not server and function.name.startswith("mcp_"):
        server = function.name.removeprefix("mcp_").partition("_")[0]
    return TOOLS.read_call(function.name, function.id, function.args, None, server)


CONTENT_READER = GeminiContent
