"""Otter's transcripts, a JSON object a line: how they are recognised and read."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from brimline.agents.transcripts.line_source import LineSource
from brimline.agents.transcripts.source import Form, Parser, Places, Source, Transcript
from brimline.context.events import MAIN, AnyEvent, Call, Compacted, SessionSeen, WindowReported
from brimline.context.usage import Usage
from brimline.context.window import ClientSettings
from brimline.files.foreign_json import JsonDecoder

from . import paths

MODEL = "otter-1"


class OtterRecord(msgspec.Struct, frozen=True):
    """A line: the session (`otter`), a user's text, a reply (`call`), or a compaction."""

    otter: str | None = None
    cwd: str | None = None
    window: int = 0
    user: str | None = None
    call: str | None = None
    reply: str = ""
    sent: int = 0
    output: int = 0
    compacted: str | None = None
    at: float | None = None


decode_record = JsonDecoder(OtterRecord).decode


class OtterParser(Parser):
    """The events of a transcript or stream; it remembers nothing from line to line."""

    def __init__(self, thread: str = MAIN) -> None:
        self.thread = thread

    def feed(self, record: bytes) -> Iterable[AnyEvent] | None:
        line = decode_record(record)
        thread, at = self.thread, line.at
        if line.otter is not None:
            seen = SessionSeen(at=at, session=line.otter, agent="otter", project=line.cwd)
            window = WindowReported(at=at, tokens=line.window, model=MODEL, thread=thread)
            return (msgspec.structs.replace(seen, records_compactions=True), window)
        if line.call is not None:
            usage = Usage(line.sent, 0, 0, line.output)
            return (Call(at=at, id=line.call, usage=usage, model=MODEL, thread=thread),)
        if line.compacted is not None:
            return (Compacted(at=at, thread=thread),)
        return None if line.user is None else ()


class OtterSource(LineSource):
    agent = "otter"
    transcripts = staticmethod(paths.transcripts)

    def folders(self, places: Places) -> list[Path]:
        return [paths.root(places)]

    def settings(self, places: Places, project: str | None = None) -> ClientSettings:
        return ClientSettings()

    def parser(self, transcript: Transcript, carry: bytes = b"") -> OtterParser:
        return OtterParser(transcript.thread)

    def stream(self) -> Parser:
        return OtterParser()

    def recognise(self, head: bytes) -> Form | None:
        return "transcript" if head.startswith(b'{"otter":') else None


SOURCE: Source = OtterSource()
