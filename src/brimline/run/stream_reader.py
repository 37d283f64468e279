"""What a child prints, looked at in passing: its stream's events, and the agent's own words."""

from collections.abc import Sequence

import msgspec

from brimline.agents import AGENTS, source
from brimline.agents.content import (
    ContentReader,
    ReplyText,
    RunOutcome,
    content_reader,
    read_stream_line,
)
from brimline.events import AnyEvent
from brimline.tracker import Session, fold
from brimline.transcripts.chunks import MAX_LINE_BYTES
from brimline.transcripts.lines import MALFORMED, PADDING
from brimline.transcripts.source import Parser, Tally

GUESSES = 8
"""By so many of the first JSON lines it is told whose stream it is."""


class Finder:
    """Looks for a text in words that come piece by piece."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tail = ""
        self.found = False

    def add(self, words: str) -> None:
        """Look at some more words."""
        seen = self._tail + words
        self.found = self.found or self._text in seen
        self._tail = (
            seen[len(seen) - len(self._text) + 1 :] if len(seen) >= len(self._text) else seen
        )


class Tap:
    """Reads along what an agent prints, whole lines at a time, in bounded memory.

    `agent` is whose stream it is, where that is known; else it is told from the first lines.
    `streams` is True once a line was one of the agent's JSON stream.
    """

    def __init__(self, agent: str | None, until: str | None = None) -> None:
        self.agent = agent
        self.streams = False
        self.tally = Tally()
        self.outcome = RunOutcome()
        self._parser: Parser | None = source(agent).stream() if agent else None
        self._reader: ContentReader | None = content_reader(agent) if agent else None
        self._silent = self._reader.silent_prefixes if self._reader else ()
        self._finder = Finder(until) if until else None
        self._session = Session(agent=agent)
        self._events: list[AnyEvent] = []
        self._head: list[bytes] = []
        self._held: list[bytes] = []
        self._size = 0

    @property
    def session(self) -> Session:
        """The session as far as its stream tells it."""
        if self._events:
            self._session = fold(self._session, self._events)
            self._events = []
        return self._session

    @property
    def found(self) -> bool:
        """Whether the text that was to be looked for was said."""
        return self._finder is not None and self._finder.found

    def feed(self, chunk: bytes) -> None:
        """Look at what came, as soon as a line is whole."""
        first, *others = chunk.split(b"\n")
        self._hold(first)
        if not others:
            return
        self._flush()
        *whole, rest = others
        for line in whole:
            self._line(line)
        self._hold(rest)

    def close(self) -> None:
        """Look at the last line, which may have no end."""
        self._flush()

    def _hold(self, piece: bytes) -> None:
        """Keep a piece of a line; of one that is longer than any record nothing is kept."""
        self._size += len(piece)
        if self._size > MAX_LINE_BYTES:
            self._held = []
        elif piece:
            self._held.append(piece)

    def _flush(self) -> None:
        line, too_long = b"".join(self._held), self._size > MAX_LINE_BYTES
        self._held, self._size = [], 0
        if too_long:
            self.tally.add_malformed(f"a line longer than {MAX_LINE_BYTES >> 20} MiB")
        elif line:
            self._line(line)

    def _line(self, line: bytes) -> None:
        if line.startswith(self._silent):
            self.tally.records += 1
        elif not (line.startswith(b"{") or line.lstrip(PADDING).startswith(b"{")):
            self._plain(line)
        elif self._parser is not None:
            self._record(line, self._parser)
        elif len(self._head) < GUESSES:
            self._guess(line)
        else:
            self._plain(line)

    def _guess(self, line: bytes) -> None:
        self._head.append(line)
        agent = streaming(b"\n".join(self._head))
        if agent is None:
            self._plain(line)
            return
        self.agent, self._parser = agent, source(agent).stream()
        self._reader = content_reader(agent)
        self._silent = self._reader.silent_prefixes
        self._session = msgspec.structs.replace(self._session, agent=agent)
        for held in self._head:
            self._record(held, self._parser)

    def _record(self, line: bytes, parser: Parser) -> None:
        self.tally.records += 1
        try:
            events = parser.feed(line)
        except MALFORMED as error:
            self.tally.add_malformed(str(error))
            self._plain(line)
            return
        if events is None:
            self.tally.unknown += 1
            self._plain(line)
            return
        self.streams = True
        self._events.extend(events)
        self._read_content(line)

    def _read_content(self, line: bytes) -> None:
        """Decode a line only if it may have an outcome, or if a text is searched for."""
        if self._reader is None:
            return
        if self._finder is None and not any(mark in line for mark in self._reader.outcome_marks):
            return
        for piece in read_stream_line(self._reader, line):
            if isinstance(piece, RunOutcome):
                self.outcome = self.outcome.plus(piece)
            elif isinstance(piece, ReplyText) and self._finder is not None:
                self._finder.add(piece.text if piece.is_continuation else f"\n{piece.text}")

    def _plain(self, line: bytes) -> None:
        if self._finder is not None:
            self._finder.add(line.decode("utf-8", "replace") + "\n")


def streaming(head: bytes, agents: Sequence[str] = tuple(AGENTS)) -> str | None:
    """Whose stream begins like this."""
    return next((one for one in agents if source(one).recognise(head) == "stream"), None)
