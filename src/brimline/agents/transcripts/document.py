"""Whole JSON documents: older transcripts and exports."""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from typing import BinaryIO

from brimline.agents.transcripts.lines import CHUNK_BYTES
from brimline.agents.transcripts.source import START, Cursor, Events, Tally
from brimline.context.events import AnyEvent
from brimline.errors import UnreadableTranscript

MAX_DOCUMENT_BYTES = 256 << 20  # a larger document is not read: it would have to be held whole


class DocumentReader:
    """The events of one JSON document, if it is not the one of the cursor; a Reader.

    A document that is cut off (the client is writing it) counts as malformed, and the cursor stays
    where it was, so that the next read tries again.
    """

    def __init__(
        self,
        path: str,
        file: BinaryIO,
        parse: Callable[[bytes, Tally], Events | None],
        cursor: Cursor = START,
    ) -> None:
        self._path, self._file, self._parse = path, file, parse
        self.cursor = cursor
        self.tally = Tally()

    def __iter__(self) -> Iterator[AnyEvent]:
        data = read_whole(self._path, self._file)
        cursor = Cursor(len(data), blake2b(data, digest_size=8).digest())
        if cursor == self.cursor:
            return
        self.tally.is_whole = True
        parse = partial(self._parse, data, self.tally)
        events = self.tally.read(parse, f"the document of {len(data)} bytes")
        if not self.tally.malformed:
            self.cursor = cursor
        yield from events


def read_whole(path: str, file: BinaryIO) -> bytes:
    """Read and close a file; raises UnreadableTranscript if it is too large to be held."""
    data = bytearray()
    with file:
        while len(data) <= MAX_DOCUMENT_BYTES and (chunk := file.read(CHUNK_BYTES)):
            data += chunk
    if len(data) > MAX_DOCUMENT_BYTES:
        reason = f"a JSON document of more than {MAX_DOCUMENT_BYTES >> 20} MiB"
        raise UnreadableTranscript(path, reason)
    return bytes(data)
