"""Finding the few bytes that matter in large files: libc's memmem on a reused buffer.

`bytes.find` is three times slower on long needles, and is what is used where libc has no memmem.
"""

import ctypes
from collections.abc import Callable, Iterator
from io import FileIO
from typing import BinaryIO, cast

CHUNK = 1 << 20
LONGEST = 16 << 20
"""A longer line is given up: counted as malformed, never held. The longest seen had 1.4 MB."""


_LIBC = ctypes.PyDLL(None)
HAS_MEMMEM = hasattr(_LIBC, "memmem")
if HAS_MEMMEM:
    _LIBC.memmem.restype = ctypes.c_size_t


class Needle:
    """A byte string at a fixed address, ready for memmem."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._kept = ctypes.create_string_buffer(raw)
        self.at = ctypes.c_size_t(ctypes.addressof(self._kept))
        self.size = ctypes.c_size_t(len(raw))


class Buffer:
    """Bytes that are read into again and again, whose address libc may be given."""

    def __init__(self, size: int = CHUNK) -> None:
        self.data = bytearray(size)
        self.view = memoryview(self.data)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self.data))

    def search(self, needle: Needle) -> Callable[[int, int], int]:
        """A function that tells where a needle stands between two places; -1 where it does not."""
        base, memmem = self._base, _LIBC.memmem
        start_at, room, at, size = ctypes.c_size_t(), ctypes.c_size_t(), needle.at, needle.size

        def find(start: int, end: int) -> int:
            start_at.value = base + start
            room.value = end - start
            found: int = memmem(start_at, room, at, size)
            return found - base if found else -1

        return find

    def find(self, needle: Needle, start: int, end: int) -> int:
        """Where a needle stands between two places; -1 where it does not."""
        return self.search(needle)(start, end)

    def line(self, start: int, hit: int, end: int) -> tuple[int, int]:
        """The line around a hit: from its beginning, not before `start`, to its newline."""
        return self.data.rfind(b"\n", start, hit) + 1 or start, self.data.find(b"\n", hit, end)


class PlainBuffer(Buffer):
    """The same without libc."""

    def search(self, needle: Needle) -> Callable[[int, int], int]:
        """A function that tells where a needle stands between two places; -1 where it does not."""
        return lambda start, end: self.data.find(needle.raw, start, end)


BUFFER = Buffer if HAS_MEMMEM else PlainBuffer
"""The buffer that this machine's libc allows."""


_spare: list[Buffer] = []


def borrow(size: int) -> Buffer:
    """A buffer of this size: one that was given back, or a new one."""
    try:
        spare = _spare.pop()
    except IndexError:
        return BUFFER(size)
    return spare if len(spare.data) == size else BUFFER(size)


def give_back(buffer: Buffer) -> None:
    """Keep a buffer for the next file; making one costs more than reading a small file."""
    if len(buffer.data) == CHUNK and not _spare:
        _spare.append(buffer)


class Chunks:
    """A file in chunks of whole lines: `buffer.data[:end]`, the last newline included.

    `offset` is where the line after the last chunk begins, `rest` what stands there without an end.
    """

    def __init__(self, file: BinaryIO, offset: int = 0, size: int = CHUNK) -> None:
        self._file = cast("FileIO", file)
        self.buffer = borrow(size)
        self.offset = offset
        self.rest = b""
        self.too_long = 0

    def __iter__(self) -> Iterator[int]:
        have = looked = 0
        while read := self._more(have):
            newline = self.buffer.data.rfind(b"\n", looked, have + read)
            have += read
            if newline < 0:
                have, looked = self._longer(have)
            else:
                yield newline + 1
                have = looked = self._passed(newline + 1, have)
        newline = self.buffer.data.rfind(b"\n", 0, have)
        if newline >= 0:
            yield newline + 1
            have = self._passed(newline + 1, have)
        self.rest = bytes(self.buffer.view[:have])
        give_back(self.buffer)

    def _more(self, have: int) -> int:
        return self._file.readinto(self.buffer.view[have:])

    def _passed(self, end: int, have: int) -> int:
        """Move what stands behind the whole lines to the front."""
        self.offset += end
        left = have - end
        self.buffer.data[:left] = self.buffer.data[end:have]
        return left

    def _longer(self, have: int) -> tuple[int, int]:
        """Make room for a line that fills the buffer; past the limit, go on behind the line."""
        if have < len(self.buffer.data):
            return have, have
        if have < LONGEST:
            larger = BUFFER(2 * have)
            larger.data[:have] = self.buffer.data
            self.buffer = larger
            return have, have
        self.too_long += 1
        return self._skip(have), 0

    def _skip(self, have: int) -> int:
        """Read over the rest of a line; what follows it begins the buffer."""
        self.offset += have
        while read := self._more(0):
            newline = self.buffer.data.find(b"\n", 0, read)
            if newline >= 0:
                return self._passed(newline + 1, read)
            self.offset += read
        return 0
