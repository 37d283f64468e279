"""The state file: how far each transcript was read, and its totals.

It only saves time: it may be deleted at any moment, and a corrupt one is ignored. An entry is used
only if the file's id, its size and the bytes before the cursor still match.
"""

import os
import time
import zlib
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline._version import __version__
from brimline.agents.transcripts.source import Transcript
from brimline.files.atomic_file import replace_file
from brimline.files.private_folder import create_private_folder
from brimline.files.regular_file import open_regular_file, read_regular_file
from brimline.sessions.codec import SavedSession, decode_session
from brimline.sessions.format_drift import DriftedFile
from brimline.sessions.summary import FileSummary

FILE_NAME = "state"
VERSION = f"{__version__} 20"  # increase the number when its shape or what it holds changes
MAX_STATE_BYTES = 1 << 30
TAIL_BYTES = 64  # compared before the cursor


class FileMark(msgspec.Struct, frozen=True, array_like=True):
    """A file's identity, and its last bytes before the offset that was read to."""

    device: int
    inode: int
    offset: int
    tail: bytes


class StateEntry(msgspec.Struct, frozen=True, array_like=True):
    """One transcript; `read` is its size and modification time when it was last read.

    `saved` is decoded only if the file grew or its calls are needed. `begun_at` is when the
    file was begun, by its records.
    """

    agent: str
    path: str
    mark: FileMark
    read: tuple[int, float]
    summary: FileSummary
    saved: bytes
    begun_at: float | None
    drift: DriftedFile | None = None
    damage: str | None = None

    def load(self) -> SavedSession:
        return decode_session(self.saved)


class State(msgspec.Struct, array_like=True):
    """All entries by path, for one version of Brimline and one time zone.

    `unassigned` are the agents whose entries changed since their calls were assigned to files.
    """

    version: str
    zone: str
    entries: dict[str, StateEntry]
    unassigned: set[str]


_state = msgspec.msgpack.Decoder(State)
_encoder = msgspec.msgpack.Encoder()


def empty() -> State:
    return State(VERSION, _time_zone(), {}, set())


def _time_zone() -> str:
    return f"{time.tzname} {time.timezone} {time.localtime().tm_isdst}"


def load(folder: Path) -> State:
    """Return the saved state, or an empty one if it is missing, corrupt or of another version."""
    try:
        data = memoryview(read_regular_file(folder / FILE_NAME, MAX_STATE_BYTES))
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
    """Write the state; a full or read-only disk only makes the next run slower."""
    data = _encoder.encode(state)
    with suppress(OSError):
        create_private_folder(folder)
        replace_file(folder / FILE_NAME, zlib.crc32(data).to_bytes(4, "little") + data)


def file_mark(path: str, offset: int) -> FileMark:
    """Return a file's mark at an offset; raises OSError."""
    file = open_regular_file(path)
    try:
        status = os.fstat(file)
        start = max(0, offset - TAIL_BYTES)
        return FileMark(status.st_dev, status.st_ino, offset, os.pread(file, offset - start, start))
    finally:
        os.close(file)


def still_matches(entry: StateEntry, transcript: Transcript) -> bool:
    """Whether the file still starts with the bytes that were read."""
    if transcript.size < entry.mark.offset:
        return False
    try:
        return file_mark(transcript.path, entry.mark.offset) == entry.mark
    except OSError:
        return False
