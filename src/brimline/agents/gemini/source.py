"""Gemini CLI."""

import re
from collections.abc import Iterator
from io import BufferedReader, RawIOBase
from typing import BinaryIO, cast

import msgspec

from brimline.agents.gemini import paths
from brimline.agents.gemini.records import GeminiHead
from brimline.agents.gemini.stream import GeminiStreamParser
from brimline.agents.gemini.transcript import ChatParser
from brimline.transcripts.document import DocumentReader
from brimline.transcripts.lines import JsonLines, open_transcript
from brimline.transcripts.source import (
    MALFORMED,
    START,
    Cursor,
    Form,
    Reader,
    ReadMode,
    Record,
    Transcript,
)

_head = msgspec.json.Decoder(GeminiHead)
_chat = re.compile(rb'\s*\{\s*"sessionId"\s*:\s*"[^"]*"\s*,\s*"projectHash"\s*:\s*"')


class Gemini:
    """Gemini CLI: chats of lines, and the older chats that are one document."""

    agent = "gemini"
    folders = staticmethod(paths.folders)
    settings = staticmethod(paths.settings)
    transcripts = staticmethod(paths.transcripts)

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> Reader:
        path, file = transcript.path, _buffered(open_transcript(transcript.path))
        whose = (transcript.session or paths.whose(path)[0], transcript.thread, transcript.project)
        if path.endswith(".json") or _is_document(file):
            return _document_reader(path, file, ChatParser(b"", *whose), cursor)
        file.seek(cursor.offset)
        return JsonLines(file, ChatParser(cursor.carry, *whose), cursor)

    def records(self, transcript: Transcript) -> Iterator[Record]:
        reader = self.read(transcript)
        if isinstance(reader, JsonLines):
            for data, events in reader.records():
                yield Record(data, events, transcript.thread)
        else:
            yield Record(b"{}", tuple(reader), transcript.thread)

    def parse(self, file: BinaryIO) -> Reader:
        peekable = _buffered(file)
        if _is_document(peekable):
            return _document_reader("the transcript", peekable, ChatParser())
        return JsonLines(peekable, ChatParser())

    def stream(self) -> GeminiStreamParser:
        return GeminiStreamParser()

    def recognise(self, head: bytes) -> Form | None:
        """A chat begins with its session and its project's hash, a stream with its `init`."""
        if _chat.match(head):
            return "transcript"
        return "stream" if any(_is_init(line) for line in head.split(b"\n")[:8]) else None


def _buffered(file: BinaryIO) -> BufferedReader:
    return BufferedReader(cast("RawIOBase", file))


def _document_reader(
    path: str, file: BinaryIO, parser: ChatParser, cursor: Cursor = START
) -> DocumentReader:
    """Return a reader of an older chat: one document, which the client writes again as a whole."""
    return DocumentReader(path, file, lambda data, _: parser.feed(data), cursor)


def _is_document(file: BufferedReader) -> bool:
    """Whether the first line only opens an object, as in pretty-printed JSON."""
    return file.peek(2)[:2] in (b"{\n", b"{\r")


def _is_init(line: bytes) -> bool:
    try:
        first = _head.decode(line)
    except MALFORMED:
        return False
    return first.type == "init" and first.session_id is not None and first.model is not None


SOURCE = Gemini()
