"""Pi."""

import re
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from brimline.agents.pi import paths
from brimline.agents.pi.records import LINES
from brimline.agents.pi.stream import PiStreamParser
from brimline.agents.pi.transcript import SessionParser
from brimline.events import MAIN
from brimline.foreign_json import JsonDecoder
from brimline.transcripts.lines import JsonLines, open_transcript
from brimline.transcripts.source import (
    START,
    Cursor,
    Form,
    Lookalike,
    Reader,
    ReadMode,
    Record,
    Transcript,
)

_KIND = re.compile(rb'\s*\{"type":"([a-z_]+)"')


class _Header(msgspec.Struct, frozen=True, rename="camel"):
    """A session's header; the first version had no number, but the model."""

    id: str
    cwd: str
    timestamp: str
    version: int | None = None
    model_id: str | None = None

    @property
    def is_own(self) -> bool:
        return self.model_id is not None if self.version is None else self.version > 0


_header = JsonDecoder(_Header)


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

    def records(self, transcript: Transcript) -> Iterator[Record]:
        for data, events in JsonLines(open_transcript(transcript.path), SessionParser()).records():
            yield Record(data, events, MAIN)

    def parse(self, file: BinaryIO) -> Reader:
        return JsonLines(file, SessionParser())

    def stream(self) -> PiStreamParser:
        return PiStreamParser()

    def recognise(self, head: bytes) -> Form | Lookalike | None:
        """By the header, which both have, and the line after it."""
        line, _, rest = head.partition(b"\n")
        if _kind(line) == "title":
            line, _, rest = rest.partition(b"\n")
        header = _header_in(line)
        if header is None:
            return None
        form = _form(rest)
        if header.is_own:
            return form
        return Lookalike(form, f"its header has version {header.version}")


def _header_in(line: bytes) -> _Header | None:
    return _header.decode_or_none(line) if _kind(line) == "session" else None


def _form(rest: bytes) -> Form:
    """A header alone is a stream's: a session is written with its first reply."""
    return "stream" if not rest.strip() or _kind(rest) in LINES else "transcript"


def _kind(line: bytes) -> str | None:
    match = _KIND.match(line)
    return match[1].decode() if match else None


SOURCE = Pi()
