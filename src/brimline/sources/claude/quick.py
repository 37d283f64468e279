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
            self._events += self._fed(piece)
        return len(rest) if pieces else 0

    def _chunk(self, chunks: Chunks, end: int) -> None:
        """Read the whole lines of a chunk. Time is spent here: no call is to spare."""
        buffer = chunks.buffer
        data, view, search = buffer.data, buffer.view, buffer.search(USAGE)
        find, rfind, begins, feed = data.find, data.rfind, data.startswith, self._parser.feed
        start, cached, thread = 0, _FAR, ""
        while (hit := search(start, end)) >= 0:
            first = line = rfind(b"\n", start, hit) + 1 or start
            stop = find(b"\n", hit, end)
            key = find(_ID, first, hit)
            if key >= 0:  # of the copies of a call, which follow each other, the last
                name = data[key : find(b'"', key + 6, hit) + 1]
                behind = key - first + 1
                while begins(name, stop + behind, end) and find(_GLUED, hit, stop) < 0:
                    line = stop + 1
                    stop = find(b"\n", line, end)
                    hit = rfind(USAGE.raw, line, stop)
                    if hit < 0:
                        break
            if cached == _FAR:
                self._gap(buffer, start, first)
            try:
                events = feed(view[line:stop]) or ()
            except MALFORMED as error:
                events = self._pieces(bytes(view[line:stop]), error)
            if not events and line > first:
                events = self._copies(bytes(view[first:line]))
            call = events[-1] if events else None
            if type(call) is Call:
                usage = call.usage
                read = usage.cache_read
                if cached != _FAR and (read < cached or not read or call.thread != thread):
                    self._gap(buffer, start, first)
                cached, thread = read + usage.cache_write, call.thread
            else:
                if cached != _FAR:
                    self._gap(buffer, start, first)
                cached = _FAR
            self._events += events
            start = stop + 1
        self._gap(buffer, start, end, last=True)

    def _copies(self, lines: bytes) -> Sequence[AnyEvent]:
        """The events of a call's earlier copies, for when the last tells nothing."""
        return [event for line in lines.splitlines() for event in self._fed(line)]

    def _gap(self, buffer: Buffer, start: int, end: int, last: bool = False) -> None:
        """Look between two calls for a compaction and read it.

        A boundary has its summary behind it, which may be in the next chunk; one without, that only
        trims, says nothing that the next call does not say, unless there is none.
        """
        if start >= end:
            return
        lines = set(_lines_with(buffer, SUMMARY, start, end))
        if lines or last:
            lines.update(_lines_with(buffer, BOUNDARY, start, end))
        for first, stop in sorted(lines):
            self._events += self._fed(bytes(buffer.view[first:stop]))

    def _fed(self, record: bytes) -> Sequence[AnyEvent]:
        """The events of a line, or of the pieces of one that is broken."""
        try:
            return self._parser.feed(record) or ()
        except MALFORMED as error:
            return self._pieces(record, error)

    def _pieces(self, line: bytes, error: Exception) -> Sequence[AnyEvent]:
        pieces = salvage(line)
        if len(pieces) < 2:
            self.tally.bad(str(error))
            return ()
        return [event for piece in pieces for event in self._fed(piece)]


def _lines_with(buffer: Buffer, needle: Needle, start: int, end: int) -> Iterator[tuple[int, int]]:
    while (hit := buffer.find(needle, start, end)) >= 0:
        first, stop = buffer.line(start, hit, end)
        yield first, stop
        start = stop + 1


class EndReader:
    """The last call of a transcript and what came after it; a Reader.

    It looks from the end backwards, in ever larger pieces, for a call that is not a sidechain's.
    """

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
                data = file.read(size - start)
                whole = data if start == 0 else data[data.find(b"\n") + 1 :]
                events = _from_last_call(whole)
                if events or start == 0:
                    return iter(events)
                tail *= 4


def _from_last_call(data: bytes) -> list[AnyEvent]:
    """The events from the last call on; nothing where there is no call."""
    end = len(data)
    while (hit := data.rfind(USAGE.raw, 0, end)) >= 0:
        end = data.rfind(b"\n", 0, hit) + 1
        parser = TranscriptParser()
        stop = data.find(b"\n", hit)
        events = _read_line(parser, data[end : stop if stop >= 0 else None])
        if any(isinstance(event, Call) for event in events) and not parser.inline:
            return [*events, *_after(parser, data[stop:] if stop >= 0 else b"")]
    return []


def _after(parser: TranscriptParser, data: bytes) -> Iterator[AnyEvent]:
    if SUMMARY.raw in data or BOUNDARY.raw in data:
        for line in data.splitlines():
            if SUMMARY.raw in line or BOUNDARY.raw in line:
                yield from _read_line(parser, line)


def _read_line(parser: TranscriptParser, line: bytes) -> Sequence[AnyEvent]:
    """The events of a line or of its pieces; what is broken tells nothing here."""
    try:
        return parser.feed(line) or ()
    except MALFORMED:
        pieces = salvage(line)
    if len(pieces) < 2:
        return ()
    return [event for piece in pieces for event in _read_line(parser, piece)]
