"""A transcript's events without looking at every record.

Only lines that hold a call's usage are decoded, of the copies of a call only the last. What it
finds is what `every` finds: that is what it is tested against.
"""

import os
from collections.abc import Iterator, Sequence

from brimline.events import AnyEvent, Call
from brimline.sources.base import START, Cursor, Tally
from brimline.sources.claude.parse import TranscriptParser
from brimline.sources.lines import MALFORMED, JsonLines, opened, salvage
from brimline.sources.scan import CHUNK, Buffer, Chunks, Needle

USAGE = Needle(b'"output_tokens":')
"""In every usage, in whatever order its fields are; escaped text cannot match it."""

SUMMARY = Needle(b'"isCompactSummary":')
BOUNDARY = Needle(b'compact_boundary"')
_ID = b'"id":"'
_GLUED = b'}{"'
_FAR = 1 << 62

TAIL = 64 << 10


def every(path: str, cursor: Cursor = START) -> JsonLines:
    """A reader that looks at every record."""
    return JsonLines(opened(path, cursor.offset), TranscriptParser(cursor.carry), cursor)


class QuickReader:
    """The events of a transcript from a cursor on; a Reader whose tally counts what it decoded.

    Between two calls of a thread lies no compaction if the second read all of the first's prompt
    from the cache: a compaction breaks the cached prefix. Only other gaps are searched for one.
    """

    def __init__(self, path: str, cursor: Cursor = START, size: int = CHUNK) -> None:
        self._path = path
        self._start = cursor
        self._size = size
        self._parser = TranscriptParser(cursor.carry)
        self._events: list[AnyEvent] = []
        self._cached = _FAR
        self._thread = ""
        self.cursor = cursor
        self.tally = Tally()

    def __iter__(self) -> Iterator[AnyEvent]:
        with opened(self._path, self._start.offset) as file:
            chunks = Chunks(file, self._start.offset, self._size)
            for end in chunks:
                self._chunk(chunks, end)
        rest = self._rest(chunks.rest)
        if self._parser.inline:
            return self._again()
        for _ in range(chunks.too_long):
            self.tally.bad("a line that is too long")
        self.cursor = Cursor(chunks.offset + rest, self._parser.carry())
        return iter(self._events)

    def _again(self) -> Iterator[AnyEvent]:
        """Sidechains inside the main file: only every record tells which chain is which."""
        reader = every(self._path, self._start)
        events = list(reader)
        self.cursor, self.tally = reader.cursor, reader.tally
        return iter(events)

    def _rest(self, rest: bytes) -> int:
        """A last line without its end is read if it is whole, else left for the next time."""
        pieces = salvage(rest)
        for piece in pieces:
            self._take(self._fed(piece))
        return len(rest) if pieces else 0

    def _chunk(self, chunks: Chunks, end: int) -> None:
        buffer = chunks.buffer
        start, self._cached = 0, _FAR
        while (hit := buffer.find(USAGE, start, end)) >= 0:
            first, stop = buffer.line(start, hit, end)
            line, stop = _last_copy(buffer, first, hit, stop, end)
            if self._cached == _FAR:
                self._gap(buffer, start, first)
            events = self._decoded(buffer, first, line, stop)
            if self._cached != _FAR and not self._follows(events):
                self._gap(buffer, start, first)
            self._take(events)
            start = stop + 1
        self._gap(buffer, start, end)

    def _decoded(self, buffer: Buffer, first: int, line: int, stop: int) -> Sequence[AnyEvent]:
        """The events of a call's last copy; of all its copies where the last tells nothing."""
        events = self._fed(buffer.view[line:stop])
        if events or line == first:
            return events
        copies = bytes(buffer.view[first:line]).splitlines()
        return [event for copy in copies for event in self._fed(copy)]

    def _follows(self, events: Sequence[AnyEvent]) -> bool:
        """Whether these go on from the call before, with nothing of its prompt lost."""
        for event in events:
            if isinstance(event, Call):
                read = event.usage.cache_read
                return read > 0 and read >= self._cached and event.thread == self._thread
        return False

    def _take(self, events: Sequence[AnyEvent]) -> None:
        self._events += events
        last = events[-1] if events else None
        if isinstance(last, Call):
            self._cached = last.usage.cache_read + last.usage.cache_write
            self._thread = last.thread
        else:
            self._cached = _FAR

    def _gap(self, buffer: Buffer, start: int, end: int) -> None:
        """Look between two calls for a compaction, or a trim, and read it."""
        if start >= end:
            return
        lines = {
            *_lines_with(buffer, SUMMARY, start, end),
            *_lines_with(buffer, BOUNDARY, start, end),
        }
        for first, stop in sorted(lines):
            self._events += self._fed(buffer.view[first:stop])

    def _fed(self, record: memoryview | bytes) -> Sequence[AnyEvent]:
        """The events of a line, or of the pieces of one that is broken."""
        self.tally.records += 1
        try:
            return self._parser.feed(record) or ()
        except MALFORMED as error:
            pieces = salvage(bytes(record))
            if len(pieces) < 2:
                self.tally.bad(str(error))
                return ()
        return [event for piece in pieces for event in self._fed(piece)]


def _last_copy(buffer: Buffer, first: int, hit: int, stop: int, end: int) -> tuple[int, int]:
    """Of the lines from `first` on that follow each other with the same message id, the last.

    A line with another record glued to it is not passed over.
    """
    data = buffer.data
    key = data.find(_ID, first, hit)
    if key < 0:
        return first, stop
    name = data[key : data.find(b'"', key + len(_ID), hit) + 1]
    behind = key - first + 1
    line = first
    while data.startswith(name, stop + behind, end) and data.find(_GLUED, line, stop) < 0:
        line = stop + 1
        stop = data.find(b"\n", line, end)
    return line, stop


def _lines_with(buffer: Buffer, needle: Needle, start: int, end: int) -> Iterator[tuple[int, int]]:
    while (hit := buffer.find(needle, start, end)) >= 0:
        first, stop = buffer.line(start, hit, end)
        yield first, stop
        start = stop + 1


class EndReader:
    """The events at the end of a transcript, back to a call of its own thread; a Reader."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.cursor = START
        self.tally = Tally()

    def __iter__(self) -> Iterator[AnyEvent]:
        with opened(self._path) as file:
            size = os.fstat(file.fileno()).st_size
            tail = TAIL
            while True:
                start = max(0, size - tail)
                file.seek(start)
                events = self._read(file.read(size - start), start > 0)
                if start == 0 or any(isinstance(event, Call) for event in events):
                    return iter(events)
                tail *= 4

    def _read(self, data: bytes, cut: bool) -> list[AnyEvent]:
        """The events of the lines with usage or a compaction; the first line may be a piece."""
        parser = TranscriptParser()
        events: list[AnyEvent] = []
        for line in data.split(b"\n")[cut:]:
            if any(needle.raw in line for needle in (USAGE, SUMMARY, BOUNDARY)):
                try:
                    events += parser.feed(line) or ()
                except MALFORMED:
                    continue
        return events
