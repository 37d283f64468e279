"""Pi: the messages of a session, in the order of the file."""

import msgspec

from brimline.handoff.digest import API, TranscriptDigest
from brimline.handoff.heard.base import ABSENT, Tools, arguments_of, text_of
from brimline.transcripts.source import parse_time

TOOLS = Tools(
    commands=frozenset({"bash"}),
    changes=frozenset({"edit", "write"}),
    lists=frozenset(),
    looks=frozenset({"fetch_url", "find", "grep", "ls", "read", "web_search"}),
)


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None
    id: str = ""
    name: str = ""
    arguments: msgspec.Raw = ABSENT


class _Message(msgspec.Struct, frozen=True, rename="camel"):
    role: str = ""
    content: msgspec.Raw = ABSENT
    tool_call_id: str = ""
    is_error: bool | None = None
    error_message: str | None = None


class _Entry(msgspec.Struct, frozen=True):
    type: str
    timestamp: str | float | None = None
    cwd: str | None = None
    message: msgspec.Raw = ABSENT


_entry = msgspec.json.Decoder(_Entry)
_message = msgspec.json.Decoder(_Message)
_blocks = msgspec.json.Decoder(str | list[_Block])


class PiListener:
    """Listens to every branch of a session: which of them counts is not looked at."""

    def __init__(self) -> None:
        self.notes = TranscriptDigest()

    def hear(self, record: bytes) -> None:
        """Take in one entry."""
        entry = _entry.decode(record)
        self.notes.stands(entry.cwd)
        if entry.type != "message" or not entry.message:
            return
        message = _message.decode(entry.message)
        match message.role:
            case "user":
                self.notes.asked(text_of(message.content))
            case "assistant":
                self._reply(message)
            case "toolResult":
                at = parse_time(entry.timestamp) if isinstance(entry.timestamp, str) else None
                text = text_of(message.content)
                self.notes.ends(message.tool_call_id, not message.is_error, text, at)
            case _:
                pass

    def _reply(self, message: _Message) -> None:
        blocks = _blocks.decode(message.content) if message.content else ""
        if isinstance(blocks, str):
            blocks = [_Block("text", blocks)]
        for block in blocks:
            if block.type == "text":
                self.notes.spoke(block.text or "")
            elif block.type == "toolCall":
                self._uses(block)
        self.notes.fails(API, message.error_message or "")

    def _uses(self, block: _Block) -> None:
        arguments = arguments_of(block.arguments if TOOLS.told(block.name) else ABSENT)
        if deed := TOOLS.deed(block.name, arguments):
            self.notes.begins(block.id, deed)


LISTENER = PiListener
