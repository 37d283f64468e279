"""JSON lines of a file that may be growing, broken or huge, in bounded memory."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import BinaryIO, Protocol, cast

import msgspec

from brimline.errors import InvalidUsage, UnreadableTranscript
from brimline.events import AnyEvent
from brimline.regular_file import open_regular_file
from brimline.transcripts.chunks import CHUNK_BYTES, MAX_LINE_BYTES
from brimline.transcripts.source import START, Cursor, Parser, Tally

# What may stand around a record; NUL bytes are what a crash leaves of a file's end.
PADDING = b" \t\r\n\0"

# What a parser raises on a record that it cannot read.
MALFORMED = (msgspec.DecodeError, InvalidUsage, RecursionError, UnicodeDecodeError)


class Lines:
    """The complete lines of a file from where it stands; `rest` is the last one without an end."""

    def __init__(self, file: BinaryIO, offset: int = 0, chunk_bytes: int = CHUNK_BYTES) -> None:
        self.file = file
        self._chunk_bytes = chunk_bytes
        self.offset = offset
        """Where the line after the last one given begins."""
        self.rest = b""
        self.too_long = 0

    def __iter__(self) -> Iterator[bytes]:
        held = b""
        skipping = 0
        while chunk := self.file.read(self._chunk_bytes):
            first, *others = chunk.split(b"\n")
            held += first
            if skipping or len(held) > MAX_LINE_BYTES:
                skipping += len(held)
                held = b""
            if not others:
                continue
            if skipping:
                self.offset += skipping + 1
                self.too_long += 1
                skipping = 0
            else:
                yield self._advance(held)
            *whole, held = others
            for line in whole:
                yield self._advance(line)
        if skipping:
            self.offset += skipping
            self.too_long += 1
        self.rest = held

    def _advance(self, line: bytes) -> bytes:
        self.offset += len(line) + 1
        return line


@cache
def _json_scanner() -> Callable[[str, int], tuple[object, int]]:
    """Reads a JSON value at a place in a text; imported when there is something broken."""
    import json

    return json.JSONDecoder().raw_decode


def recover_objects(line: bytes) -> list[bytes]:
    """The JSON objects in a line that is not one: glued together, padded, or bad UTF-8."""
    text = line.strip(PADDING).decode("utf-8", "replace")
    found: list[bytes] = []
    place = 0
    while place < len(text):
        try:
            value, end = _json_scanner()(text, place)
        except (ValueError, RecursionError):
            return []
        if not isinstance(value, dict):
            return []
        found.append(text[place:end].encode())
        place = end
        while place < len(text) and text[place] in " \t\r\n\0":
            place += 1
    return found


def is_padding(rest: bytes) -> bool:
    """Whether there is nothing in it but what may stand around a record."""
    return not rest.strip(PADDING)


class LineSource(Protocol):
    """Lines one after the other; then, where the next begins and what was left."""

    offset: int
    rest: bytes
    too_long: int

    def __iter__(self) -> Iterator[bytes]: ...


class JsonLines:
    """The events that a parser finds in the lines of a file, which it closes; a Reader."""

    def __init__(
        self,
        file: BinaryIO,
        parser: Parser,
        cursor: Cursor = START,
        lines: LineSource | None = None,
    ) -> None:
        self._file = file
        self._lines = Lines(file, cursor.offset) if lines is None else lines
        self._parser = parser
        self._consumed_rest = 0
        self.tally = Tally()

    @property
    def cursor(self) -> Cursor:
        """How far it came: a last line that is not complete is left for the next time."""
        return Cursor(self._lines.offset + self._consumed_rest, self._parser.carry())

    def __iter__(self) -> Iterator[AnyEvent]:
        feed, tally = self._parser.feed, self.tally
        with self._file:
            for line in self._lines:
                try:
                    events = feed(line)
                except MALFORMED as error:
                    yield from self._recover(line, error)
                    continue
                tally.records += 1
                if events:
                    yield from events
                elif events is None:
                    tally.unknown += 1
        yield from self._read_rest(self._lines.rest)
        for _ in range(self._lines.too_long):
            tally.add_malformed(f"a line longer than {MAX_LINE_BYTES >> 20} MiB")

    def _read_rest(self, rest: bytes) -> Iterator[AnyEvent]:
        pieces = recover_objects(rest)
        if pieces or is_padding(rest):
            self._consumed_rest = len(rest)
        for piece in pieces:
            yield from self._feed(piece)

    def _recover(self, line: bytes, error: Exception) -> Iterator[AnyEvent]:
        pieces = recover_objects(line)
        if not pieces and not is_padding(line):
            self.tally.records += 1
            self._count_malformed(error)
        for piece in pieces:
            yield from self._feed(piece)

    def _feed(self, record: bytes) -> Iterable[AnyEvent]:
        self.tally.records += 1
        try:
            events = self._parser.feed(record)
        except MALFORMED as error:
            self._count_malformed(error)
            return ()
        if events is None:
            self.tally.unknown += 1
        return events or ()

    def _count_malformed(self, error: Exception) -> None:
        self.tally.add_malformed(f"before byte {self._lines.offset}: {error}")


def open_transcript(path: str, offset: int = 0) -> BinaryIO:
    """Open a regular file for reading at an offset; UnreadableTranscript for anything else."""
    try:
        descriptor = open_regular_file(path)
    except OSError as error:
        raise UnreadableTranscript(path, error.strerror or str(error)) from error
    file = os.fdopen(descriptor, "rb", buffering=0)
    file.seek(offset)
    return cast("BinaryIO", file)
