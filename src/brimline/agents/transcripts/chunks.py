"""Large files in chunks of whole lines, in bounded memory."""

from collections.abc import Iterator
from io import FileIO
from typing import BinaryIO, cast

CHUNK_BYTES = 1 << 20
# A longer line counts as malformed and is never held. The longest seen had 1.4 MB.
MAX_LINE_BYTES = 16 << 20

_spare_buffers: list[bytearray] = []


def _take_buffer(size: int) -> bytearray:
    try:
        spare = _spare_buffers.pop()
    except IndexError:
        return bytearray(size)
    return spare if len(spare) == size else bytearray(size)


def _return_buffer(buffer: bytearray) -> None:
    """Keep a buffer for the next file; making one costs more than reading a small file."""
    if len(buffer) == CHUNK_BYTES and not _spare_buffers:
        _spare_buffers.append(buffer)


class Chunks:
    """A file in chunks of whole lines: `data[:end]`, with the last newline.

    `offset` is where the line after the last chunk begins, `rest` an incomplete line there.
    """

    def __init__(self, file: BinaryIO, offset: int = 0, size: int = CHUNK_BYTES) -> None:
        self._file = cast("FileIO", file)
        self.data = _take_buffer(size)
        self.view = memoryview(self.data)
        self.offset = offset
        self.rest = b""
        self.too_long = 0

    def __iter__(self) -> Iterator[int]:
        have = looked = 0
        while read := self._read_more(have):
            newline = self.data.rfind(b"\n", looked, have + read)
            have += read
            if newline < 0:
                have, looked = self._grow_or_skip(have)
            else:
                yield newline + 1
                have = looked = self._keep_rest(newline + 1, have)
        newline = self.data.rfind(b"\n", 0, have)
        if newline >= 0:
            yield newline + 1
            have = self._keep_rest(newline + 1, have)
        self.rest = bytes(self.view[:have])
        _return_buffer(self.data)

    def _read_more(self, have: int) -> int:
        return self._file.readinto(self.view[have:])

    def _keep_rest(self, end: int, have: int) -> int:
        """Move what follows the whole lines to the front."""
        self.offset += end
        left = have - end
        self.view[:left] = self.view[end:have]
        return left

    def _grow_or_skip(self, have: int) -> tuple[int, int]:
        """Make room for a line that fills the buffer; skip it if it is too long."""
        if have < len(self.data):
            return have, have
        if have < MAX_LINE_BYTES:
            larger = bytearray(2 * have)
            larger[:have] = self.data
            self.data, self.view = larger, memoryview(larger)
            return have, have
        self.too_long += 1
        return self._skip_line(have), 0

    def _skip_line(self, have: int) -> int:
        self.offset += have
        while read := self._read_more(0):
            newline = self.data.find(b"\n", 0, read)
            if newline >= 0:
                return self._keep_rest(newline + 1, read)
            self.offset += read
        return 0
