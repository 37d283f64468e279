"""Encode a partly read transcript as bytes for the state file.

A session is mostly calls. They are stored as rows of values, apart from the rest: with the names
of their fields they would take three times the space.
"""

from collections.abc import Iterable

import msgspec

from brimline.agents.transcripts.source import Cursor, Tally
from brimline.context.events import Call
from brimline.context.tracker import CallHistory, Session, Thread, decode_calls, encode_calls
from brimline.context.usage import Usage


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
    """A SavedSession whose calls are rows, one list per thread."""

    cursor: Cursor
    session: Session
    tally: Tally
    calls: list[list[_CallRow]]


ROW = _CallRow.__struct_fields__

_encoder = msgspec.msgpack.Encoder(enc_hook=encode_calls)
_packed = msgspec.msgpack.Decoder(_PackedSession, dec_hook=decode_calls)


def encode_session(saved: SavedSession) -> bytes:
    threads = saved.session.threads
    bare = {
        name: msgspec.structs.replace(thread, calls=CallHistory())
        for name, thread in threads.items()
    }
    session = msgspec.structs.replace(saved.session, threads=bare)
    calls = [_call_rows(thread.calls.in_order()) for thread in threads.values()]
    return _encoder.encode((saved.cursor, session, saved.tally, calls))


def _call_rows(calls: Iterable[Call]) -> list[tuple[object, ...]]:
    """Return the values of a `_CallRow` per call; tuples are built faster than structs."""
    return [
        (
            call.id,
            call.at,
            call.model,
            call.asked_for,
            call.thread,
            call.final,
            call.provider,
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output,
            usage.reasoning,
            usage.cache_write_1h,
            call.service_tier,
            call.cost,
            call.is_copy,
            call.branch,
            call.can_compact,
        )
        for call in calls
        for usage in (call.usage,)
    ]


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
