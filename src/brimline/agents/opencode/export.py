"""What `opencode export` prints: one JSON document with a session and all of its messages."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import BinaryIO

import msgspec

from brimline.agents.opencode.records import Export, OpencodeEntry
from brimline.agents.opencode.transcript import SessionParser
from brimline.errors import InvalidUsage
from brimline.events import MAIN, AnyEvent
from brimline.transcripts.document import decode_record, read_whole
from brimline.transcripts.source import START, Cursor, Tally

_export = msgspec.json.Decoder(Export)
_entry = msgspec.json.Decoder(OpencodeEntry)


class ExportReader:
    """The events of an export, if it is not the one that the cursor knows; a Reader.

    An export that is cut off counts as malformed, and the cursor stays where it was.
    """

    def __init__(
        self,
        path: str,
        file: BinaryIO,
        cursor: Cursor = START,
        session: str | None = None,
        thread: str = MAIN,
    ) -> None:
        self._path, self._file = path, file
        self._parser = SessionParser(b"", session, thread)
        self.cursor = cursor
        self.tally = Tally()

    def __iter__(self) -> Iterator[AnyEvent]:
        data = read_whole(self._path, self._file)
        digest = blake2b(data, digest_size=8).digest()
        if (len(data), digest) == (self.cursor.offset, self.cursor.carry):
            return
        self.tally.records += 1
        try:
            export = decode_record(_export, data)
        except msgspec.DecodeError as error:
            self.tally.add_malformed(f"the document of {len(data)} bytes: {error}")
            return
        self.cursor = Cursor(len(data), digest)
        yield from self._parser.session(export.info)
        for number, raw in enumerate(export.messages):
            yield from self._entry(number, raw)

    def _entry(self, number: int, raw: msgspec.Raw) -> Iterator[AnyEvent]:
        self.tally.records += 1
        try:
            entry = decode_record(_entry, raw)
            events = self._parser.message(entry.info.id or str(number), entry.info, entry.parts)
        except (msgspec.DecodeError, InvalidUsage) as error:
            self.tally.add_malformed(f"message {number}: {error}")
            return
        if events is None:
            self.tally.unknown += 1
        yield from events or ()
