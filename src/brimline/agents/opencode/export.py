"""The document that `opencode export` prints: a session and all of its messages."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain

import msgspec

from brimline.agents.opencode.conversation import (
    NOTHING,
    Conversation,
    StoredMessage,
    StoredPart,
)
from brimline.agents.opencode.records import Export, OpencodeEntry
from brimline.agents.opencode.transcript import SessionParser
from brimline.agents.transcripts.source import MALFORMED, Tally
from brimline.context.events import AnyEvent
from brimline.files.foreign_json import JsonDecoder, compact_json

_export = JsonDecoder(Export)
_entry = JsonDecoder(OpencodeEntry)


class _RawEntry(msgspec.Struct, frozen=True):
    info: msgspec.Raw
    parts: list[msgspec.Raw]


class _Identified(msgspec.Struct, frozen=True):
    id: str | None = None


_raw_entry = JsonDecoder(_RawEntry)
_identified = JsonDecoder(_Identified)


def parse_export(parser: SessionParser, data: bytes, tally: Tally) -> Iterator[AnyEvent]:
    """Return the events of an export; raises an error of MALFORMED, but not for a message."""
    export = _export.decode(data)
    return chain(parser.session(export.info), _read_messages(parser, export.messages, tally))


def read_records(parser: SessionParser, data: bytes) -> Iterator[tuple[bytes, Sequence[AnyEvent]]]:
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
            id = _identified.decode(entry.info).id or str(number)
            yield StoredMessage(id, entry.info, [StoredPart(None, part) for part in entry.parts])


def _read_messages(
    parser: SessionParser, messages: Sequence[msgspec.Raw], tally: Tally
) -> Iterator[AnyEvent]:
    for number, message in enumerate(messages):
        yield from tally.read(partial(_parse_message, parser, number, message), f"message {number}")


def _parse_message(
    parser: SessionParser, number: int, message: msgspec.Raw
) -> Sequence[AnyEvent] | None:
    entry = _entry.decode(message)
    return parser.message(entry.info.id or str(number), entry.info, entry.parts)
