"""The part of a source that is the same for all agents whose transcripts are files of lines."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import BinaryIO, Protocol

from brimline.agents.transcripts.lines import JsonLines, open_transcript
from brimline.agents.transcripts.source import (
    START,
    Cursor,
    Parser,
    Reader,
    ReadMode,
    Record,
    Transcript,
)


class LineParser(Parser, Protocol):
    """Parses the lines of one file; `thread` is that of the last one."""

    @property
    def thread(self) -> str: ...


class LineSource(ABC):
    """Reads files of lines, each from a cursor on; a subclass is a Source."""

    agent: str

    @abstractmethod
    def parser(self, transcript: Transcript, carry: bytes = b"") -> LineParser:
        """Return a parser that continues from the carry of another."""

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> Reader:
        file = open_transcript(transcript.path, cursor.offset)
        return JsonLines(file, self.parser(transcript, cursor.carry), cursor)

    def records(self, transcript: Transcript, file: BinaryIO | None = None) -> Iterator[Record]:
        parser = self.parser(transcript)
        for data, events in JsonLines(file or open_transcript(transcript.path), parser).records():
            yield Record(data, events, parser.thread)

    def parse(self, file: BinaryIO) -> Reader:
        return JsonLines(file, self.parser(Transcript(self.agent, "", 0.0, 0)))
