"""The state file: how far each transcript was read, and what it held.

It only saves time. It may be deleted at any moment, a broken one is as good as none, and an entry
is never believed when the file's id, its size or the bytes before the cursor disagree.
"""

import os
import time
import zlib
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline._version import __version__
from brimline.atomic_file import replace_file
from brimline.private_folder import create_private_folder
from brimline.regular_file import open_regular_file, read_regular_file
from brimline.survey.codec import Saved, unpack
from brimline.survey.summary import Summary
from brimline.transcripts.source import Transcript

NAME = "state"
VERSION = f"{__version__} 4"
"""Whose state is believed: the number counts up when what is kept changes its shape."""

MAX_STATE_BYTES = 1 << 30

TAIL = 64
"""How many bytes before the cursor are compared."""


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """What a file looked like where it was read to."""

    device: int
    inode: int
    offset: int
    tail: bytes


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One transcript. `read` is its size and time of change when it was read last.

    `saved` is unpacked only when the file grew or its calls are asked for.
    """

    agent: str
    path: str
    mark: Mark
    read: tuple[int, float]
    summary: Summary
    saved: bytes

    def load(self) -> Saved:
        """What is needed to read on."""
        return unpack(self.saved)


class State(msgspec.Struct, array_like=True):
    """All entries by path; made by one version of Brimline, for one time zone."""

    version: str
    zone: str
    entries: dict[str, Entry]


_state = msgspec.msgpack.Decoder(State)
_encoder = msgspec.msgpack.Encoder()


def empty() -> State:
    """A state that knows nothing."""
    return State(VERSION, _zone(), {})


def _zone() -> str:
    return f"{time.tzname} {time.timezone} {time.localtime().tm_isdst}"


def load(folder: Path) -> State:
    """The state as it was saved; an empty one where there is none that can be believed."""
    try:
        data = memoryview(read_regular_file(folder / NAME, MAX_STATE_BYTES))
    except OSError:
        return empty()
    if len(data) < 4 or zlib.crc32(data[4:]) != int.from_bytes(data[:4], "little"):
        return empty()
    try:
        state = _state.decode(data[4:])
    except msgspec.DecodeError:
        return empty()
    fresh = empty()
    return state if (state.version, state.zone) == (fresh.version, fresh.zone) else fresh


def save(state: State, folder: Path) -> None:
    """Keep the state; a disk that is full or read-only only makes the next run slower."""
    data = _encoder.encode(state)
    with suppress(OSError):
        create_private_folder(folder)
        replace_file(folder / NAME, zlib.crc32(data).to_bytes(4, "little") + data)


def mark(path: str, offset: int) -> Mark:
    """What a file looks like at an offset; raises OSError where it is gone."""
    file = open_regular_file(path)
    try:
        status = os.fstat(file)
        start = max(0, offset - TAIL)
        return Mark(status.st_dev, status.st_ino, offset, os.pread(file, offset - start, start))
    finally:
        os.close(file)


def believed(entry: Entry, transcript: Transcript) -> bool:
    """Whether the file still begins with what was read of it."""
    if transcript.size < entry.mark.offset:
        return False
    try:
        return mark(transcript.path, entry.mark.offset) == entry.mark
    except OSError:
        return False
