"""Otter's transcripts: one JSON object a line in `~/.otter/SESSION.otter`."""

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import msgspec

from brimline.agents.transcripts.lines import JsonLines, open_transcript
from brimline.agents.transcripts.source import START, Cursor, Form, Places, ReadMode, Transcript
from brimline.context.events import AnyEvent, Call, SessionSeen, WindowReported
from brimline.context.usage import Usage
from brimline.context.window import ClientSettings
from brimline.files.foreign_json import JsonDecoder

from .paths import root, transcripts


class Record(msgspec.Struct, frozen=True):
    """A line: the start of a session (`otter`), a user's text, or a reply (`call`)."""

    otter: str | None = None
    cwd: str | None = None
    window: int = 0
    user: str | None = None
    call: str | None = None
    reply: str = ""
    tokens: int = 0
    at: float | None = None


decode_record = JsonDecoder(Record).decode


class OtterParser:
    """Otter's transcripts and streams; it remembers nothing."""

    def feed(self, record: bytes) -> Iterable[AnyEvent] | None:
        """The events of one line."""
        line = decode_record(record)
        if line.otter is not None:
            seen = SessionSeen(session=line.otter, agent="otter", project=line.cwd, at=line.at)
            return (seen, WindowReported(tokens=line.window, model="otter-1"))
        if line.call is None:
            return ()
        usage = Usage(line.tokens, 0, 0, 10)
        return (Call(at=line.at, id=line.call, usage=usage, model="otter-1"),)

    def carry(self) -> bytes:
        """Return an empty state."""
        return b""


class Otter:
    """Otter's source."""

    agent = "otter"
    transcripts = staticmethod(transcripts)

    def folders(self, places: Places) -> list[Path]:
        return [root(places)]

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> JsonLines:
        return JsonLines(open_transcript(transcript.path, cursor.offset), OtterParser(), cursor)

    def parse(self, file: BinaryIO) -> JsonLines:
        return JsonLines(file, OtterParser())

    def stream(self) -> OtterParser:
        """The stream has the lines of a transcript."""
        return OtterParser()

    def recognise(self, head: bytes) -> Form | None:
        return "transcript" if head.startswith(b'{"otter":') else None

    def settings(self, places: Places, project: str | None = None) -> ClientSettings:
        return ClientSettings()


SOURCE = Otter()
