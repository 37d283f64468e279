"""Pi."""

import re
from typing import BinaryIO

import msgspec

from brimline.agents.pi import paths
from brimline.agents.pi.records import LINES
from brimline.agents.pi.stream import PiStreamParser
from brimline.agents.pi.transcript import SessionParser
from brimline.transcripts.lines import JsonLines, open_transcript
from brimline.transcripts.source import START, Cursor, Form, Reader, ReadMode, Transcript

_KIND = re.compile(rb'\s*\{"type":"([a-z_]+)"')


class _Header(msgspec.Struct, frozen=True):
    type: str
    id: str | None = None
    cwd: str | None = None


_header = msgspec.json.Decoder(_Header)


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

    def parse(self, file: BinaryIO) -> Reader:
        return JsonLines(file, SessionParser())

    def stream(self) -> PiStreamParser:
        return PiStreamParser()

    def recognise(self, head: bytes) -> Form | None:
        """By the header, which both have, and the line after it."""
        line, _, rest = head.partition(b"\n")
        if _kind(line) == "title":
            line, _, rest = rest.partition(b"\n")
        return _form(rest) if _is_header(line) else None


def _is_header(line: bytes) -> bool:
    if _kind(line) != "session":
        return False
    try:
        header = _header.decode(line)
    except msgspec.DecodeError:
        return False
    return header.id is not None and header.cwd is not None


def _form(rest: bytes) -> Form:
    """A header alone is a stream's: a session is written with its first reply."""
    return "stream" if not rest.strip() or _kind(rest) in LINES else "transcript"


def _kind(line: bytes) -> str | None:
    match = _KIND.match(line)
    return match[1].decode() if match else None


SOURCE = Pi()
