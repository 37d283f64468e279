"""Pi."""

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from brimline.agents.pi import paths
from brimline.agents.pi.records import LINES, PiMessage
from brimline.agents.pi.stream import PiStreamParser
from brimline.agents.pi.transcript import SessionParser
from brimline.agents.transcripts.lines import JsonLines, open_transcript
from brimline.agents.transcripts.source import (
    START,
    Cursor,
    Form,
    Lookalike,
    Reader,
    ReadMode,
    Record,
    Transcript,
)
from brimline.context.events import MAIN
from brimline.files.foreign_json import JsonDecoder


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    """One of the first lines, to recognise the agent."""

    type: str
    id: object = None
    cwd: str | None = None
    timestamp: object = None
    version: int | None = None
    model_id: str | None = None
    thinking_level: str | None = None
    command: str | None = None
    success: bool | None = None
    request_seq: object = msgspec.field(default=None, name="request_seq")
    message: PiMessage | str | None = None

    @property
    def is_header(self) -> bool:
        has_texts = isinstance(self.id, str) and isinstance(self.timestamp, str)
        return self.type == "session" and self.cwd is not None and has_texts

    @property
    def has_usage(self) -> bool:
        """Whether it is a message with Pi's counts."""
        return isinstance(self.message, PiMessage) and self.message.usage is not None

    @property
    def has_settings(self) -> bool:
        """Whether it sets model or thinking level, as the first version did in header or entry."""
        return self.model_id is not None or self.thinking_level is not None

    @property
    def is_printed(self) -> bool:
        """Whether `--mode rpc` printed it, which has no header.

        Debug adapters reply to commands alike, but number the requests.
        """
        if self.type == "response":
            is_reply = None not in (self.command, self.success)
            return is_reply and self.request_seq is None
        return self.type in LINES and self.has_usage


_head = JsonDecoder(_Head)


class Pi:
    """The Pi coding agent."""

    agent = "pi"
    folders = staticmethod(paths.folders)
    settings = staticmethod(paths.settings)
    transcripts = staticmethod(paths.transcripts)

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> Reader:
        file = open_transcript(transcript.path, cursor.offset)
        return JsonLines(file, SessionParser(cursor.carry), cursor)

    def records(self, transcript: Transcript, file: BinaryIO | None = None) -> Iterator[Record]:
        file = file or open_transcript(transcript.path)
        for data, events in JsonLines(file, SessionParser()).records():
            yield Record(data, events, MAIN)

    def parse(self, file: BinaryIO) -> Reader:
        return JsonLines(file, SessionParser())

    def stream(self) -> PiStreamParser:
        return PiStreamParser()

    def recognise(self, head: bytes) -> Form | Lookalike | None:
        """By the header and the line after it, else by a message with Pi's counts.

        The output of `--mode rpc` has no header, and that of a session may be lost.
        """
        lines = head.split(b"\n")
        for place, line in enumerate(map(_head.decode_or_none, lines), 1):
            if line is not None and line.is_header:
                return _match(line, lines[place:])
            if line is not None and line.is_printed:
                return "stream"
            if line is not None and line.type == "message" and line.has_usage:
                return "transcript"
        return None


def _match(header: _Head, others: list[bytes]) -> Form | Lookalike:
    """A header alone is a stream's: a session is written with its first reply."""
    written = [line for line in others if line.strip()]
    lines = [_head.decode_or_none(line) for line in written]
    is_printed = not lines or (lines[0] is not None and lines[0].type in LINES)
    form: Form = "stream" if is_printed else "transcript"
    if header.version is not None:
        doubt = f"its header has version {header.version}"
        return form if header.version > 0 else Lookalike(form, doubt)
    # The first version has no number.
    if any(line.has_settings or line.has_usage for line in (header, *filter(None, lines))):
        return form
    return Lookalike(form, "its header has no version, and no line names a model")


SOURCE = Pi()
