"""The content of Kimi Code's records, and of its `--output-format stream-json` output."""

import re
from collections.abc import Iterator

import msgspec

from brimline.agents.content import (
    AddedText,
    KeptContent,
    Piece,
    Reasoning,
    ReplyText,
    SummaryText,
    SystemPrompt,
    ToolResult,
    UserText,
    text_of,
)
from brimline.agents.tools import ToolNames, listed_skill, read_tool, server_of
from brimline.agents.transcripts.source import parse_time
from brimline.files.foreign_json import ABSENT, JsonDecoder

TOOLS = ToolNames(
    commands=frozenset({"Bash"}),
    edits=frozenset({"Edit", "Write"}),
    todos=frozenset({"TodoList"}),
    reads=frozenset({"FetchURL", "Glob", "Grep", "Read", "ReadMediaFile", "WebSearch"}),
    subagents=frozenset({"Agent"}),
    skills=frozenset({"Skill"}),
)
# What the system prompt has of a memory file, and of a skill (2.1.0). Both begin a line, so that
# the time is linear.
_MEMORY_FILE = re.compile(
    r"(?m:^)<!-- From: ([^\n]+) -->\n(.*?)(?=\n<!-- From: |\n`{7}|\Z)", re.DOTALL
)
_SKILL = re.compile(r"^- (\S+): .*\n  Path: .*\n?", re.MULTILINE)


class _Origin(msgspec.Struct, frozen=True):
    kind: str = "user"
    variant: str = ""


class _Message(msgspec.Struct, frozen=True):
    role: str = ""
    content: msgspec.Raw = ABSENT
    origin: _Origin = _Origin()


class _ContentPart(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    think: str = ""


class _ToolOutput(msgspec.Struct, frozen=True, rename="camel"):
    output: msgspec.Raw = ABSENT
    is_error: bool = False


class _LoopEvent(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    part: _ContentPart = _ContentPart()
    tool_call_id: str = ""
    name: str = ""
    args: msgspec.Raw = ABSENT
    result: _ToolOutput = _ToolOutput()


class _KimiContent(msgspec.Struct, frozen=True, rename="camel"):
    """A record; `system_prompt` is of `profile.bind`, `tools` of `llm.tools_snapshot`."""

    type: str
    system_prompt: str = ""
    tools: list[msgspec.Raw] = []
    time: float | None = None
    message: _Message = _Message()
    event: _LoopEvent = _LoopEvent()
    context_summary: str | None = None


class _NamedType(msgspec.Struct, frozen=True):
    type: str = ""


class _Function(msgspec.Struct, frozen=True):
    name: str = ""
    arguments: str = ""


class _StreamCall(msgspec.Struct, frozen=True):
    id: str = ""
    function: _Function = _Function()


class _KimiLine(msgspec.Struct, frozen=True):
    role: str = ""
    content: msgspec.Raw = ABSENT
    tool_calls: list[_StreamCall] = []


_type = JsonDecoder(_NamedType)
_record = JsonDecoder(_KimiContent)
_line = JsonDecoder(_KimiLine)

CONTENT_KINDS = frozenset(
    {"context.append_loop_event", "context.append_message", "context.apply_compaction"}
    | {"llm.tools_snapshot", "profile.bind"}
)


class KimiContent:
    """Reads a thread as it was written; a compaction keeps the summary and the user's messages.

    How much of these it keeps is not recorded: they are not counted again.
    """

    usage_follows_reply = False
    resends_reasoning = True
    silent_prefixes = ()
    outcome_marks = ()

    def __init__(self) -> None:
        self._prompt = ""
        self._tools: list[msgspec.Raw] = []

    def read_record(self, record: bytes) -> Iterator[Piece]:
        """Yield the pieces of one record; other kinds may have any shape."""
        if _type.decode(record).type not in CONTENT_KINDS:
            return
        entry = _record.decode(record)
        at = parse_time(entry.time)
        if entry.type == "context.append_message":
            yield from _read_message(entry.message, at)
        elif entry.type == "context.append_loop_event":
            yield from _read_event(entry.event, at)
        elif entry.type in ("llm.tools_snapshot", "profile.bind"):
            self._prompt = entry.system_prompt or self._prompt
            self._tools = entry.tools or self._tools
            if self._prompt and self._tools:
                yield _system_prompt(self._prompt, self._tools)
        elif entry.context_summary is not None:
            yield KeptContent((SummaryText(entry.context_summary, at),))

    def read_line(self, line: bytes) -> Iterator[Piece]:
        """Yield the pieces of one stream line."""
        entry = _line.decode(line)
        if entry.role != "assistant":
            return
        if text := text_of(entry.content):
            yield ReplyText(text)
        for call in entry.tool_calls:
            arguments = msgspec.Raw(call.function.arguments.encode())
            name = call.function.name
            yield from TOOLS.read_call(name, call.id, arguments, None, server_of(name))


def _system_prompt(prompt: str, tools: list[msgspec.Raw]) -> SystemPrompt:
    files, rest = _MEMORY_FILE.finditer(prompt), _MEMORY_FILE.sub("", prompt)
    skills, rest = _SKILL.finditer(rest), _SKILL.sub("", rest)
    return SystemPrompt(
        (
            AddedText("tools", "system prompt", rest, kind="system prompt"),
            *(AddedText("memory", file[1], file[2]) for file in files),
            *(listed_skill(each[1], each[0]) for each in skills),
            *map(read_tool, tools),
        )
    )


def _read_message(message: _Message, at: float | None) -> Iterator[Piece]:
    if message.role != "user":
        return
    text = text_of(message.content)
    if message.origin.kind == "user":
        yield UserText(text, at)
    else:
        yield AddedText("client", message.origin.variant or message.origin.kind, text, at)


def _read_event(event: _LoopEvent, at: float | None) -> Iterator[Piece]:
    match event.type:
        case "content.part" if event.part.type == "text":
            yield ReplyText(event.part.text, at)
        case "content.part" if event.part.type == "think":
            yield Reasoning(event.part.think, at)
        case "tool.call":
            server = server_of(event.name)
            yield from TOOLS.read_call(event.name, event.tool_call_id, event.args, at, server)
        case "tool.result":
            output = text_of(event.result.output)
            yield ToolResult(event.tool_call_id, not event.result.is_error, output, at=at)
        case _:
            pass


CONTENT_READER = KimiContent
