"""Gemini CLI: the messages of a chat; one is written again when its tools have answered."""

import re

import msgspec

from brimline.handoff.digest import API, WORDS, TranscriptDigest
from brimline.handoff.heard.base import ABSENT, Tools, arguments_of, text_of
from brimline.transcripts.source import parse_time

TOOLS = Tools(
    commands=frozenset({"run_shell_command"}),
    changes=frozenset({"edit", "replace", "write_file"}),
    lists=frozenset({"write_todos"}),
    looks=frozenset(
        {"glob", "google_web_search", "list_directory", "read_file", "read_many_files"}
        | {"save_memory", "search_file_content", "web_fetch"}
    ),
)

_CONTEXT = re.compile(r"\s*<[a-z_]+>\n|\s*This is the Gemini CLI\.")
"""How a message begins that Gemini CLI writes in the user's name."""

_CODE = re.compile(r"^Exit Code: (-?\d{1,10})", re.MULTILINE)


class _Answer(msgspec.Struct, frozen=True):
    output: str | None = None
    error: str | None = None


class _Response(msgspec.Struct, frozen=True):
    response: _Answer = _Answer()


class _Result(msgspec.Struct, frozen=True):
    answer: _Response = msgspec.field(default=_Response(), name="functionResponse")

    @property
    def text(self) -> str:
        """What the tool said."""
        return self.answer.response.output or self.answer.response.error or ""


class _Tool(msgspec.Struct, frozen=True):
    id: str = ""
    name: str = ""
    args: msgspec.Raw = ABSENT
    status: str | None = None
    result: list[_Result] | None = None


class _Message(msgspec.Struct, frozen=True):
    type: str | None = None
    content: msgspec.Raw = ABSENT
    timestamp: str | None = None
    tools: list[_Tool] = msgspec.field(default_factory=list[_Tool], name="toolCalls")


_message = msgspec.json.Decoder(_Message)


class GeminiListener:
    """Listens to the chat as it was written: what was rewound is heard as well."""

    def __init__(self) -> None:
        self.notes = TranscriptDigest()

    def hear(self, record: bytes) -> None:
        """Take in one message; the header and the patches tell nothing."""
        message = _message.decode(record)
        match message.type:
            case "user":
                self._asked(text_of(message.content))
            case "gemini":
                self.notes.spoke(text_of(message.content))
                for tool in message.tools:
                    self._used(tool, parse_time(message.timestamp))
            case "error":
                self.notes.fails(API, text_of(message.content))
            case _:
                pass

    def _asked(self, text: str) -> None:
        if not _CONTEXT.match(text):
            self.notes.asked(text)

    def _used(self, tool: _Tool, at: float | None) -> None:
        arguments = arguments_of(tool.args if TOOLS.told(tool.name) else ABSENT)
        if tool.name in TOOLS.lists:
            self.notes.listed([item.todo() for item in arguments.todos])
        if deed := TOOLS.deed(tool.name, arguments):
            self.notes.begins(tool.id, deed)
            text = "\n".join(result.text for result in tool.result or ())
            self.notes.ends(tool.id, _came_out(tool.status, text), text, at)


def _came_out(status: str | None, text: str) -> bool | None:
    """A shell that answered has succeeded, whatever the command's exit code was."""
    if code := _CODE.search(text[-WORDS:]):
        return int(code[1]) == 0
    return None if status is None else status == "success"


LISTENER = GeminiListener
