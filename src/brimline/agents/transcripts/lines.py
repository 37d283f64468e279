"""Lines of a file that may be growing, broken or huge, in bounded memory: one by one, in chunks."""

import os
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import partial
from io import FileIO
from typing import BinaryIO, cast

from brimline.agents.transcripts.source import MALFORMED, START, Cursor, Events, Parser, Tally
from brimline.context.events import AnyEvent
from brimline.errors import UnreadableTranscript
from brimline.files.foreign_json import PADDING, recover_objects
from brimline.files.regular_file import open_regular_file

CHUNK_BYTES = 1 << 20
# A longer line counts as malformed and is never held. The longest seen had 1.4 MB.
MAX_LINE_BYTES = 16 << 20

_spare_buffers: list[bytearray] = []


def _take_buffer(size: int) -> bytearray:
    try:
        spare = _spare_buffers.pop()
    except IndexError:
        return bytearray(size)
    return spare if len(spare) == size else bytearray(size)


def _return_buffer(buffer: bytearray) -> None:
    """Keep a buffer for the next file; making one costs more than reading a small file."""
    if len(buffer) == CHUNK_BYTES and not _spare_buffers:
        _spare_buffers.append(buffer)


class Chunks:
    """A file in chunks of whole lines: `data[:end]`, with the last newline.

    `offset` is where the line after the last chunk begins, `rest` an incomplete line there.
    """

    def __init__(self, file: BinaryIO, offset: int = 0, size: int = CHUNK_BYTES) -> None:
        self._file = cast("FileIO", file)
        self.data = _take_buffer(size)
        self.view = memoryview(self.data)
        self.offset = offset
        self.rest = b""
        self.too_long = 0

    def __iter__(self) -> Iterator[int]:
        have = looked = 0
        while read := self._read_more(have):
            newline = self.data.rfind(b"\n", looked, have + read)
            have += read
            if newline < 0:
                have, looked = self._grow_or_skip(have)
            else:
                yield newline + 1
                have = looked = self._keep_rest(newline + 1, have)
        newline = self.data.rfind(b"\n", 0, have)
        if newline >= 0:
            yield newline + 1
            have = self._keep_rest(newline + 1, have)
        self.rest = bytes(self.view[:have])
        _return_buffer(self.data)

    def _read_more(self, have: int) -> int:
        return self._file.readinto(self.view[have:])

    def _keep_rest(self, end: int, have: int) -> int:
        """Move what follows the whole lines to the front."""
        self.offset += end
        left = have - end
        self.view[:left] = self.view[end:have]
        return left

    def _grow_or_skip(self, have: int) -> tuple[int, int]:
        """Make room for a line that fills the buffer; skip it if it is too long."""
        if have < len(self.data):
            return have, have
        if have < MAX_LINE_BYTES:
            larger = bytearray(2 * have)
            larger[:have] = self.data
            self.data, self.view = larger, memoryview(larger)
            return have, have
        self.too_long += 1
        return self._skip_line(have), 0

    def _skip_line(self, have: int) -> int:
        self.offset += have
        while read := self._read_more(0):
            newline = self.data.find(b"\n", 0, read)
            if newline >= 0:
                return self._keep_rest(newline + 1, read)
            self.offset += read
        return 0


class Lines:
    """The complete lines of a file from its position on.

    `offset` is where the line after the last one given begins, `count` the number of lines before
    it, `rest` the last line without an end.
    """

    def __init__(self, file: BinaryIO, offset: int = 0, chunk_bytes: int = CHUNK_BYTES) -> None:
        self.file = file
        self._chunk_bytes = chunk_bytes
        self.offset = offset
        self.count = 0
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
                self.count += 1
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
        self.count += 1
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

    @property
    def lines_read(self) -> int:
        return self._lines.count

    def records(self, with_rest: bool = True) -> Generator[tuple[bytes, Events]]:
        """Yield each record that can be read, with its events; glued ones apart.

        Without the rest, an incomplete last line is left for the next read.
        """
        with self._lines.file:
            for line in self._lines:
                try:
                    yield line, self._parser.feed(line) or ()
                except MALFORMED:
                    yield from self._recovered(line)
        if with_rest:
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
