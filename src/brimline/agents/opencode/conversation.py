"""A session's messages, wherever they are stored: as records for the ledger, and what is new.

`Conversation` has the records in the order in which the context was built. `SessionReader` has the
events of messages that changed since the last read; an export is always read as a whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from itertools import chain
from typing import Protocol

import msgspec

from brimline.agents.opencode.records import (
    Export,
    OpencodeEntry,
    OpencodeMessage,
    OpencodePart,
    SessionInfo,
)
from brimline.agents.opencode.transcript import OpencodeParser, usage_of
from brimline.agents.transcripts.source import MALFORMED, START, Cursor, Tally
from brimline.context.events import MAIN, AnyEvent, Call, Compacted, Rewound, Trimmed
from brimline.files.foreign_json import JsonDecoder, compact_json

NOTHING = b"{}"  # a record with events and without content

_message = JsonDecoder(OpencodeMessage)
_part = JsonDecoder(OpencodePart)


class StoredPart(msgspec.Struct, frozen=True, gc=False):
    """A part of a message: its id, and its JSON."""

    id: str | None
    data: bytes | msgspec.Raw


class StoredMessage(msgspec.Struct, frozen=True):
    """A message: its id, its JSON, its parts."""

    id: str
    data: bytes | msgspec.Raw
    parts: Sequence[StoredPart]

    def encode(self, start: int = 0, end: int | None = None, kept_records: int = 0) -> bytes:
        """Return the message with some of its parts, in the shape of an export.

        If it is a compaction's reply, `kept_records` before it are kept.
        """
        parts = b",".join(bytes(part.data) for part in self.parts[start:end])
        kept = b',"keptRecords":%d' % kept_records if kept_records else b""
        return b'{"info":' + bytes(self.data) + b',"parts":[' + parts + b"]" + kept + b"}"


class Conversation:
    """Turns the messages of one session into records, each with its events.

    A record is a message, or a step of one that has several. The events are those of its calls and
    compactions, and of results that were pruned: these are known from the parts alone.
    """

    def __init__(self, parser: OpencodeParser) -> None:
        self._parser = parser
        self._records = 0
        self._places: dict[str, int] = {}  # of the first records of messages
        self._kept_from: dict[str, str] = {}  # by the message that asked for a compaction
        self._pruned: set[float] = set()  # when results of the messages so far were pruned later

    def read(self, messages: Iterable[StoredMessage]) -> Iterator[tuple[bytes, Sequence[AnyEvent]]]:
        """Yield the records of the messages; what cannot be read of them is skipped."""
        for each in messages:
            parts = _decode_parts(each.parts)
            stored = StoredMessage(each.id, each.data, [part for part, _ in parts])
            try:
                message = _message.decode(stored.data)
                events = self._parse(stored.id, message, [part for _, part in parts])
            except MALFORMED:
                continue
            if self._pruned_before(message):
                self._records += 1
                yield NOTHING, (Trimmed(thread=self._parser.thread),)
            self._places[stored.id] = self._records
            for record in self._split_steps(stored, message, events):
                self._records += 1
                yield record

    def _parse(
        self, id: str, message: OpencodeMessage, parts: Sequence[OpencodePart]
    ) -> Sequence[AnyEvent]:
        for part in parts:
            if part.kept_from is not None:
                self._kept_from[id] = part.kept_from
            if part.state and part.state.time and part.state.time.pruned is not None:
                self._pruned.add(part.state.time.pruned)
        return self._parser.message(id, message, parts) or ()

    def _pruned_before(self, message: OpencodeMessage) -> bool:
        """Whether results were pruned since the message before."""
        created = message.time.created
        past = {at for at in self._pruned if created is not None and at < created}
        self._pruned -= past
        return bool(past)

    def _split_steps(
        self, stored: StoredMessage, message: OpencodeMessage, events: Sequence[AnyEvent]
    ) -> Iterator[tuple[bytes, Sequence[AnyEvent]]]:
        """Yield each call of a message with the parts of its step; older versions write several."""
        if message.is_left_out:
            yield NOTHING, events
            return
        calls = [event for event in events if isinstance(event, Call)]
        rest = [event for event in events if not isinstance(event, Call)]
        start = 0
        for call, end in zip(calls[:-1], _step_ends(stored.parts), strict=False):
            yield stored.encode(start, end), (call,)
            start = end
        kept_records = 0
        if any(isinstance(event, Compacted) for event in rest):
            kept_from = self._kept_from.get(message.parent or "", "")
            kept_records = self._records - self._places.get(kept_from, self._records)
        yield stored.encode(start, kept_records=kept_records), (*calls[-1:], *rest)


def _decode_parts(parts: Iterable[StoredPart]) -> list[tuple[StoredPart, OpencodePart]]:
    """Decode the parts that can be read; in a database, their ids are in another column."""
    decoded: list[tuple[StoredPart, OpencodePart]] = []
    for stored in parts:
        with suppress(*MALFORMED):
            part = _part.decode(stored.data)
            if part.id is None and part.type == "step-finish":
                part = msgspec.structs.replace(part, id=stored.id)
            decoded.append((stored, part))
    return decoded


def _step_ends(parts: Sequence[StoredPart]) -> Iterator[int]:
    for end, part in enumerate(parts, 1):
        if _part.decode(part.data).type == "step-finish":
            yield end


OVERLAP_MS = 10_000  # a row may be committed after another with a later time


class MessageRow(msgspec.Struct, frozen=True):
    """A stored message: its id, when it changed (milliseconds since the epoch), its JSON."""

    id: str
    updated: int
    data: bytes


class MessageHistory(Protocol):
    """Where the messages of one session are stored."""

    def changed(self, since: int) -> tuple[SessionInfo, Iterable[MessageRow]]:
        """Return the session, and its messages that changed at that time or later, in order."""
        ...

    def every(self) -> Iterable[MessageRow]:
        """Return all messages, in order."""
        ...

    def parts(self, message: str) -> list[OpencodePart]:
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
        history: MessageHistory,
        cursor: Cursor = START,
        session: str | None = None,
        thread: str = MAIN,
        agent: str = "opencode",
    ) -> None:
        self._history, self._thread = history, thread
        self._carry = (
            msgspec.msgpack.decode(cursor.carry, type=IncrementalCarry)
            if cursor.carry
            else IncrementalCarry()
        )
        self._parser = OpencodeParser(self._carry.parser, session, thread, agent)
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

    def _parse_row(self, row: MessageRow) -> Iterable[AnyEvent] | None:
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


_export = JsonDecoder(Export)
_entry = JsonDecoder(OpencodeEntry)


class _RawEntry(msgspec.Struct, frozen=True):
    info: msgspec.Raw
    parts: list[msgspec.Raw]


class _ExportedInfo(msgspec.Struct, frozen=True):
    id: str | None = None


_raw_entry = JsonDecoder(_RawEntry)
_info = JsonDecoder(_ExportedInfo)


def parse_export(parser: OpencodeParser, data: bytes, tally: Tally) -> Iterator[AnyEvent]:
    """Return the events of an export; raises an error of MALFORMED, but not for a message."""
    export = _export.decode(data)
    return chain(parser.session(export.info), _read_messages(parser, export.messages, tally))


def read_exported_records(
    parser: OpencodeParser, data: bytes
) -> Iterator[tuple[bytes, Sequence[AnyEvent]]]:
    """Yield the records of an export with their events; none if it is malformed."""
    try:
        export = _export.decode(compact_json(data))
    except MALFORMED:
        return
    yield NOTHING, parser.session(export.info)
    yield from Conversation(parser).read(_stored_messages(export.messages))


def _stored_messages(messages: Sequence[msgspec.Raw]) -> Iterator[StoredMessage]:
    for number, message in enumerate(messages):
        with suppress(*MALFORMED):
            entry = _raw_entry.decode(message)
            id = _info.decode(entry.info).id or str(number)
            yield StoredMessage(id, entry.info, [StoredPart(None, part) for part in entry.parts])


def _read_messages(
    parser: OpencodeParser, messages: Sequence[msgspec.Raw], tally: Tally
) -> Iterator[AnyEvent]:
    for number, message in enumerate(messages):
        yield from tally.read(partial(_parse_message, parser, number, message), f"message {number}")


def _parse_message(
    parser: OpencodeParser, number: int, message: msgspec.Raw
) -> Sequence[AnyEvent] | None:
    entry = _entry.decode(message)
    return parser.message(entry.info.id or str(number), entry.info, entry.parts)
