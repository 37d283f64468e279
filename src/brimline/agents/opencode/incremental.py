"""The events of stored messages that are new or changed since the last read."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Protocol

import msgspec

from brimline.agents.opencode.conversation import NOTHING, Conversation, StoredMessage
from brimline.agents.opencode.records import OpencodeMessage, Part, SessionInfo
from brimline.agents.opencode.transcript import SessionParser, usage_of
from brimline.agents.transcripts.source import MALFORMED, START, Cursor, Tally
from brimline.context.events import MAIN, AnyEvent, Rewound, Trimmed
from brimline.files.foreign_json import JsonDecoder

OVERLAP_MS = 10_000  # a row may be committed after another with a later time

_message = JsonDecoder(OpencodeMessage)


class Row(msgspec.Struct, frozen=True):
    """A stored message: its id, when it changed (milliseconds since the epoch), its JSON."""

    id: str
    updated: int
    data: bytes


class History(Protocol):
    """Where the messages of one session are stored."""

    def changed(self, since: int) -> tuple[SessionInfo, Iterable[Row]]:
        """Return the session, and its messages that changed at that time or later, in order."""
        ...

    def every(self) -> Iterable[Row]:
        """Return all messages, in order."""
        ...

    def parts(self, message: str) -> list[Part]:
        """Return the parts of a message; malformed ones are skipped."""
        ...

    def messages(self) -> Iterator[StoredMessage]:
        """Yield all messages with their parts, in order."""
        ...


class IncrementalCarry(msgspec.Struct):
    """How far a session was read.

    `seen` has the digests of the rows within the overlap before `updated`: those are read again,
    and count only if they changed.
    """

    updated: int = 0
    seen: dict[str, bytes] = msgspec.field(default_factory=dict[str, bytes])
    revert: str | None = None
    parser: bytes = b""


class SessionReader:
    """The events of what is new in a session's messages; a Reader.

    A message is stored again while its reply arrives: the last copy counts.
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
        self._info, self._rows = history.changed(max(0, self._carry.updated - OVERLAP_MS))
        self.tally = Tally()

    @property
    def cursor(self) -> Cursor:
        """The offset is the time of the last change."""
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

    def records(self) -> Iterator[tuple[bytes, Sequence[AnyEvent]]]:
        """Yield each record that can be read, with its events."""
        yield NOTHING, self._parser.session(self._info)
        yield from Conversation(self._parser).read(self._history.messages())
        yield NOTHING, tuple(self._reverted())

    def _advance(self, seen: dict[str, tuple[int, bytes]]) -> None:
        known = self._carry
        known.updated = max([known.updated, *(updated for updated, _ in seen.values())])
        since = known.updated - OVERLAP_MS
        known.seen = {id: digest for id, (updated, digest) in seen.items() if updated >= since}

    def _parse_row(self, row: Row) -> Iterable[AnyEvent] | None:
        message = _message.decode(row.data)
        if message.compacted and message.parent:
            self._parser.asked(message.parent, self._history.parts(message.parent))
        return self._parser.message(row.id, message)

    def _reverted(self) -> Iterator[AnyEvent]:
        """The event of an undo or a redo."""
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
