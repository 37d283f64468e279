"""JSON lines of a file that may be growing, broken or huge, in bounded memory."""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import BinaryIO, cast

from brimline.agents.transcripts.chunks import CHUNK_BYTES, MAX_LINE_BYTES
from brimline.agents.transcripts.source import MALFORMED, START, Cursor, Events, Parser, Tally
from brimline.context.events import AnyEvent
from brimline.errors import UnreadableTranscript
from brimline.files.foreign_json import PADDING, recover_objects
from brimline.files.regular_file import open_regular_file


class Lines:
    """The complete lines of a file from its position on.

    `offset` is where the line after the last one given begins, `rest` the last line without an end.
    """

    def __init__(self, file: BinaryIO, offset: int = 0, chunk_bytes: int = CHUNK_BYTES) -> None:
        self.file = file
        self._chunk_bytes = chunk_bytes
        self.offset = offset
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


def is_padding(rest: bytes) -> bool:
    return not rest.strip(PADDING)


class JsonLines:
    """The events that a parser finds in the lines of a file, which it closes; a Reader."""

    def __init__(self, file: BinaryIO, parser: Parser, cursor: Cursor = START) -> None:
        self._lines = Lines(file, cursor.offset)
        self._parser = parser
        self._consumed_rest = 0
        self.tally = Tally()

    @property
    def cursor(self) -> Cursor:
        """An incomplete last line is left for the next read."""
        return Cursor(self._lines.offset + self._consumed_rest, self._parser.carry())

    def records(self) -> Iterator[tuple[bytes, Events]]:
        """Yield each record that can be read, with its events; glued ones apart."""
        with self._lines.file:
            for line in self._lines:
                try:
                    yield line, self._parser.feed(line) or ()
                except MALFORMED:
                    yield from self._recovered(line)
        yield from self._recovered(self._lines.rest)

    def _recovered(self, line: bytes) -> Iterator[tuple[bytes, Events]]:
        for record in recover_objects(line):
            with suppress(*MALFORMED):
                yield record, self._parser.feed(record) or ()

    def __iter__(self) -> Iterator[AnyEvent]:
        feed, tally = self._parser.feed, self.tally
        with self._lines.file:
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
        rest = self._lines.rest
        objects = recover_objects(rest)
        if objects or is_padding(rest):
            self._consumed_rest = len(rest)
        yield from self._feed(objects)
        for _ in range(self._lines.too_long):
            tally.add_malformed(f"a line longer than {MAX_LINE_BYTES >> 20} MiB")

    def _recover(self, line: bytes, error: Exception) -> Iterator[AnyEvent]:
        objects = recover_objects(line)
        if not objects and not is_padding(line):
            self.tally.records += 1
            self.tally.add_malformed(f"before byte {self._lines.offset}: {error}")
        return self._feed(objects)

    def _feed(self, objects: list[bytes]) -> Iterator[AnyEvent]:
        for record in objects:
            parse = partial(self._parser.feed, record)
            yield from self.tally.read(parse, f"before byte {self._lines.offset}")


def open_transcript(path: str, offset: int = 0) -> BinaryIO:
    """Open a regular file for reading at an offset; raises UnreadableTranscript."""
    try:
        descriptor = open_regular_file(path)
    except OSError as error:
        raise UnreadableTranscript(path, error.strerror or str(error)) from error
    file = os.fdopen(descriptor, "rb", buffering=0)
    file.seek(offset)
    return cast("BinaryIO", file)
