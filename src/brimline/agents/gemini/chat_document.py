"""An older chat: one JSON document that the client writes anew after each message."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import BinaryIO

import msgspec

from brimline.agents.gemini.transcript import ChatParser
from brimline.errors import InvalidUsage
from brimline.events import AnyEvent
from brimline.transcripts.document import read_whole
from brimline.transcripts.source import START, Cursor, Tally


class ChatDocument:
    """The events of a whole document, if it is not the one that the cursor knows; a Reader.

    A document that is cut off (the client is writing it) counts as malformed, and the cursor stays
    where it was, so that the next read looks again.
    """

    def __init__(
        self, path: str, file: BinaryIO, parser: ChatParser, cursor: Cursor = START
    ) -> None:
        self._path, self._file, self._parser = path, file, parser
        self.cursor = cursor
        self.tally = Tally()

    def __iter__(self) -> Iterator[AnyEvent]:
        data = read_whole(self._path, self._file)
        digest = blake2b(data, digest_size=8).digest()
        if (len(data), digest) == (self.cursor.offset, self.cursor.carry):
            return
        self.tally.records += 1
        try:
            events = self._parser.feed(data)
        except (msgspec.DecodeError, InvalidUsage) as error:
            self.tally.add_malformed(f"the document of {len(data)} bytes: {error}")
            return
        self.cursor = Cursor(len(data), digest)
        if events is None:
            self.tally.unknown += 1
        yield from events or ()
