"""What a child prints, looked at in passing: its stream's events, and the agent's own words."""

from collections.abc import Sequence

import msgspec

from brimline.events import AnyEvent
from brimline.run.said import QUIET, Ear, Told, ear
from brimline.sources import AGENTS, source
from brimline.tracker import Session, fold
from brimline.transcripts.chunks import MAX_LINE_BYTES
from brimline.transcripts.lines import MALFORMED, PADDING
from brimline.transcripts.source import Parser, Tally
from brimline.usage import Usage

GUESSES = 8
"""By so many of the first JSON lines it is told whose stream it is."""


class Outcome(msgspec.Struct):
    """What the client's own lines say of how a run came out, added up."""

    cost: float | None = None
    turns: int | None = None
    failed: bool | None = None
    billed: Usage | None = None

    def add(self, told: Told) -> None:
        """Add what a line tells."""
        if told.cost is not None:
            self.cost = told.cost + (self.cost or 0.0)
        if told.turns is not None:
            self.turns = told.turns + (self.turns or 0)
        if told.billed is not None:
            self.billed = told.billed if self.billed is None else self.billed + told.billed
        if told.failed is not None:
            self.failed = told.failed


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
        self.outcome = Outcome()
        self._parser: Parser | None = source(agent).stream() if agent else None
        self._ear: Ear | None = ear(agent) if agent else None
        self._idle = self._ear.idle if self._ear else ()
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
        if line.startswith(self._idle):
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
        self.agent, self._parser, self._ear = agent, source(agent).stream(), ear(agent)
        self._idle = self._ear.idle
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
        self._hear(line)

    def _hear(self, line: bytes) -> None:
        """Words are looked at where somebody waits for them, the rest where a line has a sign."""
        if self._ear is None:
            return
        if self._finder is None and not any(sign in line for sign in self._ear.signs):
            return
        told = heard(self._ear, line)
        self.outcome.add(told)
        if self._finder is not None:
            for said in told.said:
                if said.kind == "text":
                    self._finder.add(said.text if said.goes_on else f"\n{said.text}")

    def _plain(self, line: bytes) -> None:
        if self._finder is not None:
            self._finder.add(line.decode("utf-8", "replace") + "\n")


def heard(by: Ear, line: bytes) -> Told:
    """What a line says; one that looks otherwise than we know says nothing."""
    try:
        return by.hear(line)
    except MALFORMED:
        return QUIET


def streaming(head: bytes, agents: Sequence[str] = tuple(AGENTS)) -> str | None:
    """Whose stream begins like this."""
    return next((one for one in agents if source(one).recognise(head) == "stream"), None)
