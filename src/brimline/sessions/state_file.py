"""The state file: how far each transcript was read, and its totals.

It only saves time: it may be deleted at any moment, and a corrupt one is ignored. An entry is used
only if the file's id, its size and the bytes before the cursor still match.
"""

import os
import time
import zlib
from contextlib import suppress
from operator import attrgetter
from pathlib import Path

import msgspec

from brimline._version import __version__
from brimline.agents.transcripts.source import Cursor, Tally, Transcript
from brimline.context.events import Call
from brimline.context.tracker import CallHistory, Session, Thread, decode_calls, encode_calls
from brimline.context.usage import Usage
from brimline.files.atomic_file import replace_file
from brimline.files.private_folder import create_private_folder
from brimline.files.regular_file import open_regular_file, read_regular_file
from brimline.sessions.format_drift import DriftedFile
from brimline.sessions.summary import FileSummary

FILE_NAME = "state"
VERSION = f"{__version__} 23"  # increase the number when its shape or what it holds changes
MAX_STATE_BYTES = 1 << 30
TAIL_BYTES = 64  # compared before the cursor


class SavedSession(msgspec.Struct, frozen=True):
    """A transcript's session up to a cursor, and what was counted so far."""

    cursor: Cursor
    session: Session
    tally: Tally


class _CallRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    id: str
    at: float | None
    model: str | None
    asked_for: str | None
    thread: str
    final: bool
    provider: str | None
    input: int
    cache_read: int
    cache_write: int
    output: int
    reasoning: int | None
    cache_write_1h: int
    service_tier: str | None
    cost: float | None
    is_copy: bool
    branch: str | None
    can_compact: bool

    def to_call(self) -> Call:
        usage = Usage(
            self.input,
            self.cache_read,
            self.cache_write,
            self.output,
            self.reasoning,
            self.cache_write_1h,
        )
        return Call(
            at=self.at,
            id=self.id,
            usage=usage,
            model=self.model,
            asked_for=self.asked_for,
            thread=self.thread,
            final=self.final,
            provider=self.provider,
            service_tier=self.service_tier,
            cost=self.cost,
            is_copy=self.is_copy,
            branch=self.branch,
            can_compact=self.can_compact,
        )


class _PackedSession(msgspec.Struct, frozen=True, array_like=True):
    """A SavedSession whose calls are rows, one list per thread.

    A session is mostly calls: with the names of their fields they would take three times the space.
    """

    cursor: Cursor
    session: Session
    tally: Tally
    calls: list[list[_CallRow]]


ROW = _CallRow.__struct_fields__
# The values of a `_CallRow`; tuples are built faster than structs.
_row_of = attrgetter(
    *(f"usage.{name}" if name in Usage.__struct_fields__ else name for name in ROW)
)

_session_encoder = msgspec.msgpack.Encoder(enc_hook=encode_calls)
_packed = msgspec.msgpack.Decoder(_PackedSession, dec_hook=decode_calls)


def encode_session(saved: SavedSession) -> bytes:
    threads = saved.session.threads
    bare = {
        name: msgspec.structs.replace(thread, calls=CallHistory())
        for name, thread in threads.items()
    }
    session = msgspec.structs.replace(saved.session, threads=bare)
    calls = [list(map(_row_of, thread.calls.in_order())) for thread in threads.values()]
    return _session_encoder.encode((saved.cursor, session, saved.tally, calls))


def decode_session(data: bytes) -> SavedSession:
    packed = _packed.decode(data)
    threads = {
        name: _with_calls(thread, rows)
        for (name, thread), rows in zip(packed.session.threads.items(), packed.calls, strict=True)
    }
    session = msgspec.structs.replace(packed.session, threads=threads)
    return SavedSession(packed.cursor, session, packed.tally)


def _with_calls(thread: Thread, rows: list[_CallRow]) -> Thread:
    return msgspec.structs.replace(thread, calls=CallHistory(row.to_call() for row in rows))


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

    `unassigned` are the agents whose entries changed since their calls were assigned to files:
    `status` saves what it read, and `report` must still assign it.
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


def still_matches(mark: FileMark, transcript: Transcript) -> bool:
    """Whether the file still starts with the bytes that were read."""
    if transcript.size < mark.offset:
        return False
    try:
        return file_mark(transcript.path, mark.offset) == mark
    except OSError:
        return False
