"""Reads the events of a transcript without decoding every record.

Only lines that hold a call's usage, a compaction, a title or evidence of a long window or of a
resumed session are decoded, and of the copies of a call only the last. The events are those of
`read_every_record`, which the tests compare with; replies without usage that a call follows may be
left out. Of other records only a sample is looked at. A file that another program has written
again, with blanks around its colons, is read as a whole.
"""

import os
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress

from brimline.agents.claude.records import TRANSCRIPT_KINDS, Kind
from brimline.agents.claude.transcript import (
    COMMAND_OUTPUT,
    RESOLVED_KEY,
    RESUMED,
    TRAILER_END,
    TranscriptParser,
)
from brimline.agents.transcripts.line_filter import FASTEST_LINE_FILTER, LineFilter, LineRun
from brimline.agents.transcripts.lines import (
    CHUNK_BYTES,
    Chunks,
    JsonLines,
    Lines,
    is_padding,
    open_transcript,
)
from brimline.agents.transcripts.source import MALFORMED, START, Cursor, Tally
from brimline.context.events import AnyEvent, Call, Unmetered
from brimline.files.foreign_json import JsonDecoder, recover_objects

USAGE = b'"output_tokens":'  # in every usage, whatever its order; escaped text cannot match it
BOUNDARY = b'compact_boundary"'
SUMMARY = b'"isCompactSummary":'
# The start of each title record but `{"type":"`, which every record has; the best title is last.
TITLES = (b'summary","summary":"', b'ai-title","aiTitle":"', b'custom-title","customTitle":"')
EVIDENCE = (RESOLVED_KEY + b":", COMMAND_OUTPUT, TRAILER_END, RESUMED)
NEEDLES = (USAGE, BOUNDARY, SUMMARY, *TITLES, *EVIDENCE)
ID_KEY = b'"id":"'  # precedes a message's id
REPLY = b'"assistant"'  # in every reply, with or without usage

_SPACED = re.compile(rb'\{(?:\s|"[^"\n]*"(?:\s|:\s))')  # how a record begins that is not compact

# A sample of the records' kinds is looked at: of all records it would take 1 s per GB.
RECORDS_PER_PLACE, MAX_SAMPLED_BYTES = 5, 2 << 10
# With more unknown or malformed records than these in the samples, every record is read.
MAX_SAMPLED_UNREAD, MAX_UNREAD_SHARE = 2, 0.05

_kind = JsonDecoder(Kind)

# A filter serves one reader at a time, and several threads may read. Creating one costs more than
# reading a small file.
_spare_filters: list[LineFilter] = []

FIRST_TAIL_BYTES = 64 << 10  # mostly with a title, which the client repeats every few records
MAX_TAIL_BYTES = 64 << 20  # held in memory; a file without a call in its last 64 MiB is given up


def read_every_record(path: str, cursor: Cursor = START) -> JsonLines:
    """Return a reader that decodes every record."""
    return JsonLines(open_transcript(path, cursor.offset), TranscriptParser(cursor.carry), cursor)


class FastReader:
    """The events of a transcript from a cursor on; its tally counts the records it looked at."""

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
        self._sampled = self._unread = self._selected = self._spaced = 0
        self.cursor = cursor
        self.tally = Tally()

    def __iter__(self) -> Iterator[AnyEvent]:
        with (
            open_transcript(self._path, self._start.offset) as file,
            _borrowed_filter(self._line_filter) as line_filter,
        ):
            chunks = Chunks(file, self._start.offset, self._chunk_bytes)
            for end in chunks:
                self._sample_kinds(chunks, end)
                call_end = 0
                for run in line_filter.runs(chunks.data, end):
                    events = self._read_run(chunks, run)
                    self._events += events
                    self._selected += 1
                    if _has_call(events):
                        call_end = run[2] + 1
                self._read_unmetered(chunks, call_end, end)
        rest_bytes = self._read_rest(chunks.rest)
        if self._parser.inline:
            return self._reread(self._carry_at_start())
        if self._spaced or self._unread > max(MAX_SAMPLED_UNREAD, MAX_UNREAD_SHARE * self._sampled):
            return self._reread(self._start.carry)
        self.tally.records += self._sampled + self._selected
        for _ in range(chunks.too_long):
            self.tally.add_malformed("a line that is too long")
        self.cursor = Cursor(chunks.offset + rest_bytes, self._parser.carry())
        return iter(self._events)

    def _sample_kinds(self, chunks: Chunks, end: int) -> None:
        """Look at the kinds of records at some places of a chunk, but not of long ones."""
        data, view, line = chunks.data, chunks.view, 0
        for place in (0, end // 3, 2 * end // 3, _last_lines(data, end)):
            if line < place:
                line = data.find(b"\n", place - 1, end) + 1
            for _ in range(RECORDS_PER_PLACE):
                stop = data.find(b"\n", line, end)
                if stop < 0:
                    return
                self._sampled += 1
                self._spaced += _SPACED.match(data, line) is not None
                if stop - line <= MAX_SAMPLED_BYTES:
                    self._unread += not self._is_known_kind(view[line:stop])
                line = stop + 1

    def _is_known_kind(self, record: memoryview) -> bool:
        try:
            is_known = _kind.decode(record).type in TRANSCRIPT_KINDS
        except MALFORMED:
            return False
        self.tally.unknown += not is_known
        return is_known

    def _read_unmetered(self, chunks: Chunks, start: int, end: int) -> None:
        """Read the replies in a part of a chunk that the filter did not select: without usage."""
        data = chunks.data
        while (hit := data.find(REPLY, start, end)) >= 0:
            line = data.rfind(b"\n", start, hit) + 1 or start
            start = data.find(b"\n", hit, end) + 1
            reply = bytes(chunks.view[line : start - 1])
            if not any(needle in reply for needle in NEEDLES):
                self._events += _parse_line(self._parser, reply, self.tally)

    def _reread(self, carry: bytes) -> Iterator[AnyEvent]:
        """Read every record: to separate sidechains in the main file, or to count unknown kinds."""
        reader = read_every_record(self._path, Cursor(self._start.offset, carry))
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


def _last_lines(data: bytearray, end: int) -> int:
    """Return where the last lines of a sample begin; `end` is behind a newline."""
    for _ in range(RECORDS_PER_PLACE):
        end = data.rfind(b"\n", 0, max(0, end - 1)) + 1
    return end


def _has_call(events: Sequence[AnyEvent]) -> bool:
    if not events:
        return False
    return isinstance(events[-1], Call) or any(isinstance(event, Call) for event in events)


def _ends_with_call(events: Sequence[AnyEvent], data: bytearray, id_offset: int) -> bool:
    """Return whether the last event is the call whose id stands at this offset."""
    last = events[-1] if events else None
    return isinstance(last, Call) and data.startswith(last.id.encode() + b'"', id_offset)


class TailReader:
    """Reads the last call of a transcript and what follows it; all of it if it is not compact.

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
                if _SPACED.match(lines):
                    return self._read_all()
                events = _events_from_last_call(lines, self.tally)
                if events:
                    return iter([*_last_title(lines), *events])
                if start == 0 or tail_bytes >= MAX_TAIL_BYTES:
                    return _unmetered(lines, self.tally)
                tail_bytes *= 4

    def _read_all(self) -> Iterator[AnyEvent]:
        reader = read_every_record(self._path)
        events = list(reader)
        self.tally = reader.tally
        return iter(events)


def _events_from_last_call(data: bytes, tally: Tally) -> list[AnyEvent]:
    """Return the events from the last call on; none if there is no call."""
    end = len(data)
    while (hit := data.rfind(USAGE, 0, end)) >= 0:
        end = data.rfind(b"\n", 0, hit) + 1
        parser = TranscriptParser()
        stop = data.find(b"\n", hit)
        events = _parse_line(parser, data[end : stop if stop >= 0 else None], Tally())
        if any(isinstance(event, Call) for event in events) and not parser.inline:
            rest = data[stop:] if stop >= 0 else b""
            return [*events, *_compactions(parser, rest), *_unmetered(rest, tally)]
    return []


def _last_title(data: bytes) -> Sequence[AnyEvent]:
    """Return the last title of the best kind; none if there is no title."""
    for start in reversed(TITLES):
        if (hit := data.rfind(start)) >= 0:
            stop = data.find(b"\n", hit)
            line = data[data.rfind(b"\n", 0, hit) + 1 : stop if stop >= 0 else None]
            return _parse_line(TranscriptParser(), line, Tally())
    return ()


def _compactions(parser: TranscriptParser, data: bytes) -> Iterator[AnyEvent]:
    if SUMMARY in data or BOUNDARY in data:
        for line in data.splitlines():
            if SUMMARY in line or BOUNDARY in line:
                yield from _parse_line(parser, line, Tally())


def _unmetered(data: bytes, tally: Tally) -> Iterator[AnyEvent]:
    """Yield the replies without usage."""
    if REPLY in data:
        parser = TranscriptParser()
        for line in data.splitlines():
            if REPLY in line:
                events = _parse_line(parser, line, tally)
                yield from (event for event in events if isinstance(event, Unmetered))


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
