"""The state file: how far each transcript was read, and what it held.

It only saves time. It may be deleted at any moment, a broken one is as good as none, and an entry
is never believed when the file's id, its size or the bytes before the cursor disagree.
"""

import os
import time
import zlib
from pathlib import Path

import msgspec

from brimline._version import __version__
from brimline.sources.base import Cursor, Tally, Transcript
from brimline.survey.summary import Summary
from brimline.tracker import Session

NAME = "state"
TAIL = 64
"""How many bytes before the cursor are compared."""


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """What a file looked like where it was read to."""

    device: int
    inode: int
    offset: int
    tail: bytes


class Saved(msgspec.Struct, frozen=True, array_like=True):
    """What is needed to read on: decoded only when a file grew or its calls are asked for."""

    cursor: Cursor
    session: Session
    tally: Tally


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One transcript. `read` is its size and time of change when it was read last."""

    agent: str
    path: str
    mark: Mark
    read: tuple[int, float]
    summary: Summary
    saved: bytes

    def load(self) -> Saved:
        """The part that is kept packed."""
        return _saved.decode(self.saved)


class State(msgspec.Struct, array_like=True):
    """All entries by path; made by one version of Brimline, for one time zone."""

    version: str
    zone: str
    entries: dict[str, Entry]


_state = msgspec.msgpack.Decoder(State)
_saved = msgspec.msgpack.Decoder(Saved)
_encoder = msgspec.msgpack.Encoder()


def empty() -> State:
    """A state that knows nothing."""
    return State(__version__, _zone(), {})


def _zone() -> str:
    return f"{time.tzname} {time.timezone} {time.localtime().tm_isdst}"


def load(folder: Path) -> State:
    """The state as it was saved; an empty one where there is none that can be believed."""
    try:
        data = (folder / NAME).read_bytes()
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
    import tempfile

    data = _encoder.encode(state)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=NAME)
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(zlib.crc32(data).to_bytes(4, "little"))
            file.write(data)
        Path(name).replace(folder / NAME)
    except OSError:
        Path(name).unlink(missing_ok=True)


def pack(saved: Saved) -> bytes:
    """The part of an entry that is kept packed."""
    return _encoder.encode(saved)


def mark(path: str, offset: int) -> Mark:
    """What a file looks like at an offset; raises OSError where it is gone."""
    with open(path, "rb", buffering=0) as file:
        return _mark(file.fileno(), offset)


def _mark(file: int, offset: int) -> Mark:
    status = os.fstat(file)
    start = max(0, offset - TAIL)
    return Mark(status.st_dev, status.st_ino, offset, os.pread(file, offset - start, start))


def believed(entry: Entry, transcript: Transcript) -> bool:
    """Whether the file still begins with what was read of it."""
    if transcript.size < entry.mark.offset:
        return False
    try:
        return mark(transcript.path, entry.mark.offset) == entry.mark
    except OSError:
        return False
