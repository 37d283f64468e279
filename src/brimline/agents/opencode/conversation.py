"""A session's messages as records, in the order in which the context was built."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from brimline.agents.opencode.records import OpencodeMessage, Part
from brimline.agents.opencode.transcript import SessionParser
from brimline.agents.transcripts.source import MALFORMED
from brimline.context.events import AnyEvent, Call, Compacted, Trimmed
from brimline.files.foreign_json import JsonDecoder

NOTHING = b"{}"  # a record with events and without content

_message = JsonDecoder(OpencodeMessage)
_part = JsonDecoder(Part)


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

    def __init__(self, parser: SessionParser) -> None:
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
        self, id: str, message: OpencodeMessage, parts: Sequence[Part]
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


def _decode_parts(parts: Iterable[StoredPart]) -> list[tuple[StoredPart, Part]]:
    """Decode the parts that can be read; in a database, their ids are in another column."""
    decoded: list[tuple[StoredPart, Part]] = []
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
