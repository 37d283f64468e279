"""A session's messages as they are stored, one row each, and the events of what is new in them."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Protocol

import msgspec

from brimline.agents.opencode.records import OpencodeMessage, Part, SessionInfo
from brimline.agents.opencode.transcript import SessionParser, usage_of
from brimline.events import MAIN, AnyEvent, Rewound, Trimmed
from brimline.transcripts.source import MALFORMED, START, Cursor, Tally

# Milliseconds: a row that was stamped before the last one we saw may be committed after it.
OVERLAP = 10_000

_message = msgspec.json.Decoder(OpencodeMessage)


class Row(msgspec.Struct, frozen=True):
    """A stored message: its id, when it changed (milliseconds since the epoch), its JSON."""

    id: str
    updated: int
    data: bytes


class History(Protocol):
    """Where the messages of one session are stored."""

    def changed(self, since: int) -> tuple[SessionInfo, Iterable[Row]]:
        """What the session says of itself, and the messages that changed at that time or later.

        They are in the order of the conversation.
        """
        ...

    def every(self) -> Iterable[Row]:
        """All messages, in that order."""
        ...

    def parts(self, message: str) -> list[Part]:
        """The parts of a message."""
        ...


class IncrementalCarry(msgspec.Struct):
    """How far a session was read.

    `seen` has the digests of the rows that changed within the overlap before `updated`: those are
    looked at again, and count only if they changed.
    """

    updated: int = 0
    seen: dict[str, bytes] = msgspec.field(default_factory=dict[str, bytes])
    revert: str | None = None
    parser: bytes = b""


class SessionReader:
    """The events of what is new in a session's messages; a Reader.

    A message is stored anew while its reply comes in: the last copy wins.
    """

    def __init__(
        self,
        history: History,
        cursor: Cursor = START,
        session: str | None = None,
        thread: str = MAIN,
    ) -> None:
        self._history, self._thread = history, thread
        self._carry = (
            msgspec.msgpack.decode(cursor.carry, type=IncrementalCarry)
            if cursor.carry
            else IncrementalCarry()
        )
        self._parser = SessionParser(self._carry.parser, session, thread)
        self._info, self._rows = history.changed(max(0, self._carry.updated - OVERLAP))
        self.tally = Tally()

    @property
    def cursor(self) -> Cursor:
        """How far it came; the offset is the time of the last change."""
        self._carry.parser = self._parser.carry()
        return Cursor(self._carry.updated, msgspec.msgpack.encode(self._carry))

    def __iter__(self) -> Iterator[AnyEvent]:
        yield from self._parser.session(self._info)
        known, seen = self._carry, dict[str, tuple[int, bytes]]()
        for row in self._rows:
            digest = blake2b(row.data, digest_size=8).digest()
            seen[row.id] = (row.updated, digest)
            if known.seen.get(row.id) != digest:
                yield from self.tally.read(partial(self._parse_row, row), f"message {row.id}")
        yield from self._reverted()
        self._advance(seen)

    def _advance(self, seen: dict[str, tuple[int, bytes]]) -> None:
        known = self._carry
        known.updated = max([known.updated, *(updated for updated, _ in seen.values())])
        since = known.updated - OVERLAP
        known.seen = {id: digest for id, (updated, digest) in seen.items() if updated >= since}

    def _parse_row(self, row: Row) -> Iterable[AnyEvent] | None:
        message = _message.decode(row.data)
        if message.compacted and message.parent:
            self._parser.asked(message.parent, self._history.parts(message.parent))
        return self._parser.message(row.id, message)

    def _reverted(self) -> Iterator[AnyEvent]:
        """An undone part of the conversation, or one that is there again."""
        revert = self._info.revert.message if self._info.revert else None
        if revert == self._carry.revert:
            return
        self._carry.revert = revert
        last = self._last_before(revert)
        if last is not None and last[1].compacts:
            yield Trimmed(thread=self._thread)
        else:
            yield Rewound(to=last[0] if last else None, thread=self._thread)

    def _last_before(self, revert: str | None) -> tuple[str, OpencodeMessage] | None:
        last: tuple[str, OpencodeMessage] | None = None
        for row in self._history.every():
            if revert is not None and row.id >= revert:
                continue
            with suppress(*MALFORMED):
                message = _message.decode(row.data)
                if usage_of(message.tokens) is not None:
                    last = (row.id, message)
        return last
