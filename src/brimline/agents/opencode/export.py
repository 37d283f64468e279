"""The document that `opencode export` prints: a session and all of its messages."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

import msgspec

from brimline.agents.opencode.records import Export, OpencodeEntry
from brimline.agents.opencode.transcript import SessionParser
from brimline.events import AnyEvent
from brimline.transcripts.source import Tally

_export = msgspec.json.Decoder(Export)
_entry = msgspec.json.Decoder(OpencodeEntry)


def parse_export(parser: SessionParser, data: bytes, tally: Tally) -> Iterator[AnyEvent]:
    """Return the events of an export; raises an error of MALFORMED, but not for a message."""
    export = _export.decode(data)
    return chain(parser.session(export.info), _read_messages(parser, export.messages, tally))


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
