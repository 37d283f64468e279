"""Read an agent's output: the events of its stream, its outcome, and whether it says a text."""

from collections.abc import Sequence

import msgspec

from brimline.agents import agent_names, get_agent, source
from brimline.agents.content import (
    ContentReader,
    ReplyText,
    RunOutcome,
    read_stream_line,
)
from brimline.agents.transcripts.lines import MAX_LINE_BYTES
from brimline.agents.transcripts.source import MALFORMED, Parser, Tally
from brimline.context.events import AnyEvent
from brimline.context.tracker import Session, fold
from brimline.files.foreign_json import PADDING

MAX_DETECTION_LINES = 64  # JSON lines by which the agent is detected; hooks write some before it


class TextSearch:
    """Searches for a text in a text that comes in parts."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tail = ""
        self.found = False

    def add(self, part: str) -> None:
        seen = self._tail + part
        self.found = self.found or self._text in seen
        self._tail = (
            seen[len(seen) - len(self._text) + 1 :] if len(seen) >= len(self._text) else seen
        )


class StreamReader:
    """Reads an agent's output line by line, in bounded memory.

    `agent` is detected from the first lines if it is not given. `is_stream` is True once a line
    belonged to the agent's JSON stream.
    """

    def __init__(self, agent: str | None, until: str | None = None) -> None:
        self.agent = agent
        self.is_stream = False
        self.tally = Tally()
        self.outcome = RunOutcome()
        self._parser: Parser | None = source(agent).stream() if agent else None
        self._reader: ContentReader | None = get_agent(agent).content_reader() if agent else None
        self._silent = self._reader.silent_prefixes if self._reader else ()
        self._search = TextSearch(until) if until else None
        self._session = Session(agent=agent)
        self._events: list[AnyEvent] = []
        self._head: list[bytes] = []
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def session(self) -> Session:
        if self._events:
            self._session = fold(self._session, self._events)
            self._events = []
        return self._session

    @property
    def text_found(self) -> bool:
        return self._search is not None and self._search.found

    def feed(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._buffer_part(first)
        if not others:
            return
        self._end_line()
        *whole, rest = others
        for line in whole:
            self._read_line(line)
        self._buffer_part(rest)

    def close(self) -> None:
        """Read the last line, which may have no end."""
        self._end_line()

    def _buffer_part(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > MAX_LINE_BYTES:
            self._parts = []
        elif part:
            self._parts.append(part)

    def _end_line(self) -> None:
        line, too_long = b"".join(self._parts), self._size > MAX_LINE_BYTES
        self._parts, self._size = [], 0
        if too_long:
            self.tally.add_malformed(f"a line longer than {MAX_LINE_BYTES >> 20} MiB")
        elif line:
            self._read_line(line)

    def _read_line(self, line: bytes) -> None:
        if line.startswith(self._silent):
            self.tally.records += 1
        elif not (line.startswith(b"{") or line.lstrip(PADDING).startswith(b"{")):
            self._search_plain_line(line)
        elif self._parser is not None:
            self._read_record(line, self._parser)
        elif len(self._head) < MAX_DETECTION_LINES:
            self._detect_agent(line)
        else:
            self._search_plain_line(line)

    def _detect_agent(self, line: bytes) -> None:
        self._head.append(line)
        agent = detect_stream(b"\n".join(self._head))
        if agent is None:
            self._search_plain_line(line)
            return
        self.agent, self._parser = agent, source(agent).stream()
        self._reader = get_agent(agent).content_reader()
        self._silent = self._reader.silent_prefixes
        self._session = msgspec.structs.replace(self._session, agent=agent)
        for early_line in self._head:
            self._read_record(early_line, self._parser)

    def _read_record(self, line: bytes, parser: Parser) -> None:
        self.tally.records += 1
        try:
            events = parser.feed(line)
        except MALFORMED as error:
            self.tally.add_malformed(str(error))
            self._search_plain_line(line)
            return
        if events is None:
            self.tally.unknown += 1
            self._search_plain_line(line)
            return
        self.is_stream = True
        self._events.extend(events)
        self._read_content(line)

    def _read_content(self, line: bytes) -> None:
        """Decode a line only if it may have an outcome, or if a text is searched for."""
        if self._reader is None:
            return
        if self._search is None and not any(mark in line for mark in self._reader.outcome_marks):
            return
        for piece in read_stream_line(self._reader, line):
            if isinstance(piece, RunOutcome):
                self.outcome = self.outcome.plus(piece)
            elif isinstance(piece, ReplyText) and self._search is not None:
                self._search.add(piece.text if piece.is_continuation else f"\n{piece.text}")

    def _search_plain_line(self, line: bytes) -> None:
        if self._search is not None:
            self._search.add(line.decode("utf-8", "replace") + "\n")


def detect_stream(head: bytes, agents: Sequence[str] | None = None) -> str | None:
    """The agent, of these or of all, whose stream begins like this."""
    named = agent_names() if agents is None else agents
    return next((one for one in named if get_agent(one).recognise(head) == "stream"), None)
