"""A transcript's events without looking at every record.

Only lines that hold a call's usage are decoded, of the copies of a call only the last. What it
finds is what `every` finds: that is what it is tested against.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress

from brimline.events import AnyEvent, Call
from brimline.sources.claude.calls import Calls, calls
from brimline.sources.claude.parse import TranscriptParser
from brimline.transcripts.chunks import CHUNK_BYTES, Chunks
from brimline.transcripts.line_filter import FASTEST_LINE_FILTER, LineRun
from brimline.transcripts.lines import (
    MALFORMED,
    JsonLines,
    Lines,
    is_padding,
    open_transcript,
    recover_objects,
)
from brimline.transcripts.source import START, Cursor, Tally

USAGE = b'"output_tokens":'
"""In every usage, in whatever order its fields are; escaped text cannot match it."""

BOUNDARY = b'compact_boundary"'
SUMMARY = b'"isCompactSummary":'
NEEDLES = (USAGE, BOUNDARY, SUMMARY)
ID = b'"id":"'
"""What stands before a message's id."""

_spare: list[Calls] = []
"""What reads the lines that tell a call, a compaction or a trim. Each is used by one reader at a
time, since several threads may read; to make one costs more than to read a small file."""

TAIL = 32 << 10
"""How much of a file's end is looked at first."""

MAX_TAIL_BYTES = 64 << 20
"""A file that ends with this much and no call is not looked at further: it is held in memory."""


def every(path: str, cursor: Cursor = START) -> JsonLines:
    """A reader that looks at every record."""
    return JsonLines(open_transcript(path, cursor.offset), TranscriptParser(cursor.carry), cursor)


class QuickReader:
    """The events of a transcript from a cursor on; a Reader whose tally counts what is broken."""

    def __init__(
        self,
        path: str,
        cursor: Cursor = START,
        size: int = CHUNK_BYTES,
        calls: Calls | None = None,
    ) -> None:
        self._path = path
        self._start = cursor
        self._size = size
        self._calls = calls
        self._parser = TranscriptParser(cursor.carry)
        self._events: list[AnyEvent] = []
        self.cursor = cursor
        self.tally = Tally()

    def __iter__(self) -> Iterator[AnyEvent]:
        with (
            open_transcript(self._path, self._start.offset) as file,
            _borrowed(self._calls) as calls,
        ):
            chunks = Chunks(file, self._start.offset, self._size)
            for end in chunks:
                self._chunk(calls, chunks, end)
        rest = self._rest(chunks.rest)
        if self._parser.inline:
            return self._again()
        for _ in range(chunks.too_long):
            self.tally.add_malformed("a line that is too long")
        self.cursor = Cursor(chunks.offset + rest, self._parser.carry())
        return iter(self._events)

    def _again(self) -> Iterator[AnyEvent]:
        """Sidechains inside the main file: only every record tells which chain is which."""
        reader = every(self._path, Cursor(self._start.offset, self._chains()))
        events = list(reader)
        self.cursor, self.tally = reader.cursor, reader.tally
        return iter(events)

    def _chains(self) -> bytes:
        """The carry of every record before the start: a sidechain may have begun there."""
        parser, lines = TranscriptParser(self._start.carry), Lines(open_transcript(self._path))
        with lines.file:
            for line in lines:
                if lines.offset > self._start.offset:
                    break
                with suppress(*MALFORMED):
                    parser.feed(line)
        return parser.carry()

    def _rest(self, rest: bytes) -> int:
        """A last line without its end is read if it is whole, else left for the next time."""
        pieces = recover_objects(rest)
        for piece in pieces:
            self._events += self._fed(piece)
        return len(rest) if pieces or is_padding(rest) else 0

    def _chunk(self, calls: Calls, chunks: Chunks, end: int) -> None:
        """Read the whole lines of a chunk."""
        found = self._events
        for told in calls.told(chunks.data, end, self._parser):
            if isinstance(told, Call):
                found.append(told)
            else:
                found += self._run(chunks, told)

    def _run(self, chunks: Chunks, run: LineRun) -> Sequence[AnyEvent]:
        """The events of lines that are copies of one call, or of a line alone."""
        first, line, stop, name, _ = run
        try:
            events = self._parser.feed(chunks.view[line:stop]) or ()
        except MALFORMED:
            return self._one_by_one(bytes(chunks.view[first:stop]))
        if line > first and not _tells(events, chunks.data, name + len(ID)):
            return [*events[:-1], *self._one_by_one(bytes(chunks.view[first:stop]))]
        return events

    def _one_by_one(self, lines: bytes) -> Sequence[AnyEvent]:
        """The events of lines that looked like copies of one call and were not, or are broken."""
        return [event for line in lines.split(b"\n") for event in self._fed(line)]

    def _fed(self, line: bytes) -> Sequence[AnyEvent]:
        """The events of a line, or of the pieces of one that is broken."""
        try:
            return self._parser.feed(line) or ()
        except MALFORMED as error:
            return self._pieces(line, error)

    def _pieces(self, line: bytes, error: Exception) -> Sequence[AnyEvent]:
        pieces = recover_objects(line)
        if not pieces:
            self.tally.add_malformed(str(error))
        events: list[AnyEvent] = []
        for piece in pieces:
            try:
                events += self._parser.feed(piece) or ()
            except MALFORMED as worse:
                self.tally.add_malformed(str(worse))
        return events


@contextmanager
def _borrowed(given: Calls | None) -> Generator[Calls]:
    """What was given to read with; else a spare one, or a new one, which is kept for the next."""
    if given is not None:
        yield given
        return
    try:
        mine = _spare.pop()
    except IndexError:
        mine = calls(FASTEST_LINE_FILTER(NEEDLES, ID), ID)
    try:
        yield mine
    finally:
        _spare.append(mine)


def _tells(events: Sequence[AnyEvent], data: bytearray, name: int) -> bool:
    """Whether the last event is the call whose id stands where lines were taken for copies."""
    last = events[-1] if events else None
    return isinstance(last, Call) and data.startswith(last.id.encode() + b'"', name)


class EndReader:
    """The last call of a transcript and what came after it; a Reader.

    It looks from the end backwards, in ever larger pieces, for a call that is not a sidechain's.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.cursor = START
        self.tally = Tally()

    def __iter__(self) -> Iterator[AnyEvent]:
        with open_transcript(self._path) as file:
            size = os.fstat(file.fileno()).st_size
            tail = TAIL
            while True:
                start = max(0, size - tail)
                file.seek(start)
                data = file.read(size - start)
                whole = data if start == 0 else data[data.find(b"\n") + 1 :]
                events = _from_last_call(whole)
                if events or start == 0 or tail >= MAX_TAIL_BYTES:
                    return iter(events)
                tail *= 4


def _from_last_call(data: bytes) -> list[AnyEvent]:
    """The events from the last call on; nothing where there is no call."""
    end = len(data)
    while (hit := data.rfind(USAGE, 0, end)) >= 0:
        end = data.rfind(b"\n", 0, hit) + 1
        parser = TranscriptParser()
        stop = data.find(b"\n", hit)
        events = _read_line(parser, data[end : stop if stop >= 0 else None])
        if any(isinstance(event, Call) for event in events) and not parser.inline:
            return [*events, *(_after(parser, data, stop) if stop >= 0 else ())]
    return []


def _after(parser: TranscriptParser, data: bytes, place: int) -> Iterator[AnyEvent]:
    """What is told about compactions behind a place."""
    if data.find(SUMMARY, place) >= 0 or data.find(BOUNDARY, place) >= 0:
        for line in data[place:].splitlines():
            if SUMMARY in line or BOUNDARY in line:
                yield from _read_line(parser, line)


def _read_line(parser: TranscriptParser, line: bytes) -> Sequence[AnyEvent]:
    """The events of a line or of its pieces; what is broken tells nothing here."""
    with suppress(*MALFORMED):
        return parser.feed(line) or ()
    events: list[AnyEvent] = []
    for piece in recover_objects(line):
        with suppress(*MALFORMED):
            events += parser.feed(piece) or ()
    return events
