"""Reads the events of a transcript without decoding every record.

Only lines that hold a call's usage, a compaction or evidence of a long window are decoded, and of
the copies of a call only the last. The events are those of `read_every_record`, which the tests
compare with.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress

from brimline.agents.claude.long_context import (
    COMMAND_OUTPUT,
    RESOLVED_KEY,
    TRAILER_END,
)
from brimline.agents.claude.transcript import TranscriptParser
from brimline.events import AnyEvent, Call
from brimline.transcripts.chunks import CHUNK_BYTES, Chunks
from brimline.transcripts.line_filter import FASTEST_LINE_FILTER, LineFilter, LineRun
from brimline.transcripts.lines import (
    JsonLines,
    Lines,
    is_padding,
    open_transcript,
    recover_objects,
)
from brimline.transcripts.source import MALFORMED, START, Cursor, Tally

USAGE = b'"output_tokens":'  # in every usage, whatever its order; escaped text cannot match it
BOUNDARY = b'compact_boundary"'
SUMMARY = b'"isCompactSummary":'
NEEDLES = (USAGE, BOUNDARY, SUMMARY, RESOLVED_KEY, COMMAND_OUTPUT, TRAILER_END)
ID_KEY = b'"id":"'  # precedes a message's id

# A filter serves one reader at a time, and several threads may read. Creating one costs more than
# reading a small file.
_spare_filters: list[LineFilter] = []

FIRST_TAIL_BYTES = 32 << 10
MAX_TAIL_BYTES = 64 << 20  # held in memory; a file without a call in its last 64 MiB is given up


def read_every_record(path: str, cursor: Cursor = START) -> JsonLines:
    """Return a reader that decodes every record."""
    return JsonLines(open_transcript(path, cursor.offset), TranscriptParser(cursor.carry), cursor)


class FastReader:
    """The events of a transcript from a cursor on; its tally counts only malformed lines."""

    def __init__(
        self,
        path: str,
        cursor: Cursor = START,
        chunk_bytes: int = CHUNK_BYTES,
        line_filter: LineFilter | None = None,
    ) -> None:
        self._path = path
        self._start = cursor
        self._chunk_bytes = chunk_bytes
        self._line_filter = line_filter
        self._parser = TranscriptParser(cursor.carry)
        self._events: list[AnyEvent] = []
        self.cursor = cursor
        self.tally = Tally()

    def __iter__(self) -> Iterator[AnyEvent]:
        with (
            open_transcript(self._path, self._start.offset) as file,
            _borrowed_filter(self._line_filter) as line_filter,
        ):
            chunks = Chunks(file, self._start.offset, self._chunk_bytes)
            for end in chunks:
                for run in line_filter.runs(chunks.data, end):
                    self._events += self._read_run(chunks, run)
        rest_bytes = self._read_rest(chunks.rest)
        if self._parser.inline:
            return self._reread()
        for _ in range(chunks.too_long):
            self.tally.add_malformed("a line that is too long")
        self.cursor = Cursor(chunks.offset + rest_bytes, self._parser.carry())
        return iter(self._events)

    def _reread(self) -> Iterator[AnyEvent]:
        """Read every record: only that way sidechains inside the main file can be separated."""
        reader = read_every_record(self._path, Cursor(self._start.offset, self._carry_at_start()))
        events = list(reader)
        self.cursor, self.tally = reader.cursor, reader.tally
        return iter(events)

    def _carry_at_start(self) -> bytes:
        """Return the carry after every record before the start: a sidechain may begin there."""
        parser, lines = TranscriptParser(self._start.carry), Lines(open_transcript(self._path))
        with lines.file:
            for line in lines:
                if lines.offset > self._start.offset:
                    break
                with suppress(*MALFORMED):
                    parser.feed(line)
        return parser.carry()

    def _read_rest(self, rest: bytes) -> int:
        """Read a last line without newline if it is complete; return how many bytes were read."""
        pieces = recover_objects(rest)
        for piece in pieces:
            self._events += _parse_line(self._parser, piece, self.tally)
        return len(rest) if pieces or is_padding(rest) else 0

    def _read_run(self, chunks: Chunks, run: LineRun) -> Sequence[AnyEvent]:
        """Return the events of one line, or of the last of several copies of one call."""
        first, line, stop, name, name_end = run
        if name == name_end:  # not a plain call: it may have evidence of a long window
            return self._read_lines(bytes(chunks.view[first:stop]))
        try:
            events = self._parser.feed(chunks.view[line:stop]) or ()
        except MALFORMED:
            return self._read_lines(bytes(chunks.view[first:stop]))
        if line > first and not _ends_with_call(events, chunks.data, name + len(ID_KEY)):
            return [*events[:-1], *self._read_lines(bytes(chunks.view[first:stop]))]
        return events

    def _read_lines(self, lines: bytes) -> Sequence[AnyEvent]:
        """Return the events of lines that are broken, or are not the copies they look like."""
        parser, tally = self._parser, self.tally
        return [event for line in lines.split(b"\n") for event in _parse_line(parser, line, tally)]


@contextmanager
def _borrowed_filter(given: LineFilter | None) -> Generator[LineFilter]:
    """Give the given filter, else a spare or new one, which is kept for the next reader."""
    if given is not None:
        yield given
        return
    try:
        line_filter = _spare_filters.pop()
    except IndexError:
        line_filter = FASTEST_LINE_FILTER(NEEDLES, ID_KEY)
    try:
        yield line_filter
    finally:
        _spare_filters.append(line_filter)


def _ends_with_call(events: Sequence[AnyEvent], data: bytearray, id_offset: int) -> bool:
    """Return whether the last event is the call whose id stands at this offset."""
    last = events[-1] if events else None
    return isinstance(last, Call) and data.startswith(last.id.encode() + b'"', id_offset)


class TailReader:
    """Reads the last call of a transcript and what follows it.

    It searches backwards, in growing pieces, for a call that is not a sidechain's.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.cursor = START
        self.tally = Tally()

    def __iter__(self) -> Iterator[AnyEvent]:
        with open_transcript(self._path) as file:
            size = os.fstat(file.fileno()).st_size
            tail_bytes = FIRST_TAIL_BYTES
            while True:
                start = max(0, size - tail_bytes)
                file.seek(start)
                data = file.read(size - start)
                lines = data if start == 0 else data[data.find(b"\n") + 1 :]
                events = _events_from_last_call(lines)
                if events or start == 0 or tail_bytes >= MAX_TAIL_BYTES:
                    return iter(events)
                tail_bytes *= 4


def _events_from_last_call(data: bytes) -> list[AnyEvent]:
    """Return the events from the last call on; none if there is no call."""
    end = len(data)
    while (hit := data.rfind(USAGE, 0, end)) >= 0:
        end = data.rfind(b"\n", 0, hit) + 1
        parser = TranscriptParser()
        stop = data.find(b"\n", hit)
        events = _parse_line(parser, data[end : stop if stop >= 0 else None], Tally())
        if any(isinstance(event, Call) for event in events) and not parser.inline:
            return [*events, *(_compactions_after(parser, data, stop) if stop >= 0 else ())]
    return []


def _compactions_after(parser: TranscriptParser, data: bytes, offset: int) -> Iterator[AnyEvent]:
    if data.find(SUMMARY, offset) >= 0 or data.find(BOUNDARY, offset) >= 0:
        for line in data[offset:].splitlines():
            if SUMMARY in line or BOUNDARY in line:
                yield from _parse_line(parser, line, Tally())


def _parse_line(parser: TranscriptParser, line: bytes, tally: Tally) -> Sequence[AnyEvent]:
    """Return the events of a line, or of the objects in a broken one; count malformed ones."""
    try:
        return parser.feed(line) or ()
    except MALFORMED as error:
        pieces = recover_objects(line)
        if not pieces:
            tally.add_malformed(str(error))
    events: list[AnyEvent] = []
    for piece in pieces:
        try:
            events += parser.feed(piece) or ()
        except MALFORMED as error:
            tally.add_malformed(str(error))
    return events
