"""What is needed to read on from where a reading ended, as bytes for the state file.

A session is mostly calls. They are kept apart from the rest, as rows of their values: with the
names of their fields they would take thrice the room.
"""

from collections.abc import Iterable

import msgspec

from brimline.events import Call
from brimline.tracker import CallHistory, Session, Thread, decode_calls, encode_calls
from brimline.transcripts.source import Cursor, Tally
from brimline.usage import Usage


class Saved(msgspec.Struct, frozen=True):
    """What is needed to read on."""

    cursor: Cursor
    session: Session
    tally: Tally


class _Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    id: str
    at: float | None
    model: str | None
    asked_for: str | None
    thread: str
    final: bool
    input: int
    cache_read: int
    cache_write: int
    output: int
    reasoning: int | None

    def call(self) -> Call:
        usage = Usage(self.input, self.cache_read, self.cache_write, self.output, self.reasoning)
        return Call(
            at=self.at,
            id=self.id,
            usage=usage,
            model=self.model,
            asked_for=self.asked_for,
            thread=self.thread,
            final=self.final,
        )


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    """The same with the calls of each thread taken out."""

    cursor: Cursor
    session: Session
    tally: Tally
    calls: list[list[_Row]]


ROW = _Row.__struct_fields__
"""What is kept of a call and its usage."""

_encoder = msgspec.msgpack.Encoder(enc_hook=encode_calls)
_packed = msgspec.msgpack.Decoder(_Packed, dec_hook=decode_calls)


def pack(saved: Saved) -> bytes:
    """What is kept, as bytes."""
    threads = saved.session.threads
    bare = {
        name: msgspec.structs.replace(thread, calls=CallHistory())
        for name, thread in threads.items()
    }
    session = msgspec.structs.replace(saved.session, threads=bare)
    calls = [_rows(thread.calls.values()) for thread in threads.values()]
    return _encoder.encode((saved.cursor, session, saved.tally, calls))


def _rows(calls: Iterable[Call]) -> list[tuple[object, ...]]:
    """The values of a `_Row` for each call; tuples are made faster than rows."""
    return [
        (
            call.id,
            call.at,
            call.model,
            call.asked_for,
            call.thread,
            call.final,
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output,
            usage.reasoning,
        )
        for call in calls
        for usage in (call.usage,)
    ]


def unpack(data: bytes) -> Saved:
    """What was kept."""
    packed = _packed.decode(data)
    threads = {
        name: _with_calls(thread, rows)
        for (name, thread), rows in zip(packed.session.threads.items(), packed.calls, strict=True)
    }
    session = msgspec.structs.replace(packed.session, threads=threads)
    return Saved(packed.cursor, session, packed.tally)


def _with_calls(thread: Thread, rows: list[_Row]) -> Thread:
    return msgspec.structs.replace(thread, calls=CallHistory(row.call() for row in rows))
