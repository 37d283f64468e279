"""The rows of a session, and which of them the store does not have yet."""

import socket
from collections.abc import Iterator, Mapping

import msgspec

from brimline.events import MAIN, Call
from brimline.monitor.session_state import SessionState
from brimline.observations import Observation
from brimline.store.base import PutCall, PutCompaction, PutSession, PutThread, Write
from brimline.store.rows import CallRow, CompactionRow, SessionRow, ThreadRow
from brimline.tracker import Reading, Thread

SEEN_EVERY_S = 10.0  # `seen_at` alone is written again after this
HOSTNAME = socket.gethostname()


class StoredRows:
    """What the store has of one session, so that only what is new is written."""

    def __init__(self) -> None:
        self._session: SessionRow | None = None
        self._pending_session: SessionRow | None = None
        self._readings: dict[str, Reading] = {}
        self._calls: dict[str, tuple[int, Call]] = {}
        self._compactions: dict[tuple[str, int], CompactionRow] = {}

    def pending_writes(
        self, heard: Observation, watched: SessionState, readings: Mapping[str, Reading]
    ) -> list[Write]:
        """Return the writes for what the store does not have, or has otherwise."""
        row = self._pending_session = session_row(heard, watched)
        writes: list[Write] = [
            PutThread(thread_row(watched, name, reading))
            for name, reading in readings.items()
            if self._readings.get(name) != reading
        ]
        writes += [PutCall(call) for call in self._new_calls(watched)]
        writes += [PutCompaction(compaction) for compaction in self._new_compactions(watched)]
        return [PutSession(row), *writes] if writes or self._differs(row) else []

    def mark_stored(self, watched: SessionState, readings: Mapping[str, Reading]) -> None:
        """The store has carried out the pending writes."""
        self._session = self._pending_session
        self._readings.update(readings)
        for name, thread in watched.folded.threads.items():
            if (last := thread.calls.last) is not None:
                self._calls[name] = thread.call_count, last
        self._compactions = {(row.thread, row.cycle): row for row in _all_compactions(watched)}

    def seen_lately(self, at: float) -> bool:
        """Whether the store has it that the session lived not long before a time."""
        return self._session is not None and at - self._session.seen_at < SEEN_EVERY_S

    def seen_before(self, at: float) -> bool:
        """Whether the store has it that the session was last seen before a time."""
        return self._session is not None and self._session.seen_at < at

    def release(self, thread: str) -> None:
        """Hold nothing of a thread: if it is heard of again, all of it is written again."""
        self._readings.pop(thread, None)
        self._calls.pop(thread, None)

    def _differs(self, row: SessionRow) -> bool:
        known = self._session
        if known is None or not self.seen_lately(row.seen_at):
            return True
        return msgspec.structs.replace(row, seen_at=known.seen_at) != known

    def _new_calls(self, watched: SessionState) -> Iterator[CallRow]:
        """The calls that are not stored yet, and the last one that is where it has grown."""
        for name, thread in watched.folded.threads.items():
            first, last = self._calls.get(name, (0, None))
            if last is not None and thread.calls.get(last.id) != last:
                first = first - 1 if last.id in thread.calls else 0
            if first < thread.call_count:
                yield from call_rows(watched.id, thread, first)

    def _new_compactions(self, watched: SessionState) -> Iterator[CompactionRow]:
        for row in _all_compactions(watched):
            if self._compactions.get((row.thread, row.cycle)) != row:
                yield row


def session_row(heard: Observation, watched: SessionState) -> SessionRow:
    """Who and where a session is; it was last seen when it ended, where it did."""
    return SessionRow(
        id=watched.id,
        agent=watched.agent,
        seen_at=heard.at if watched.ended_at is None else watched.ended_at,
        host=watched.host or HOSTNAME,
        project=watched.project,
        model=watched.model_of(MAIN),
        version=watched.folded.version or watched.version,
        title=watched.folded.title,
        transcript=watched.files.own,
        parent=watched.parent,
        ended_at=watched.ended_at,
    )


def thread_row(watched: SessionState, name: str, reading: Reading) -> ThreadRow:
    """A thread as it is now."""
    thread = watched.folded.threads.get(name)
    return ThreadRow(
        session=watched.id,
        thread=name,
        cycle=reading.cycle,
        seq=watched.next_seq(),
        source=reading.source,
        state=reading.state,
        at=reading.at,
        sent=reading.sent,
        held=reading.held,
        window=reading.window.tokens if reading.window else None,
        window_why=reading.window.why if reading.window else None,
        limit=reading.limit.tokens if reading.limit else None,
        limit_why=reading.limit.why if reading.limit else None,
        percent=reading.percent,
        percent_raw=reading.percent_raw,
        percent_of_limit=reading.percent_of_limit,
        peak_sent=thread.peak_sent if thread else None,
        calls=thread.call_count if thread else 0,
        model=thread.model if thread else None,
    )


def call_rows(session: str, thread: Thread, first: int = 0) -> Iterator[CallRow]:
    """The calls of a thread from one on, as far as it still holds them."""
    first = max(first, thread.dropped.count)
    for place, call in enumerate(thread.calls_from(first), first):
        yield CallRow(
            session=session,
            thread=thread.name,
            call=call.id,
            seq=place,
            cycle=thread.cycle_of(place),
            input=call.usage.input,
            cache_read=call.usage.cache_read,
            cache_write=call.usage.cache_write,
            output=call.usage.output,
            model=call.model,
            at=call.at,
        )


def _all_compactions(watched: SessionState) -> Iterator[CompactionRow]:
    for thread in watched.folded.threads.values():
        yield from compaction_rows(watched, thread)


def compaction_rows(watched: SessionState, thread: Thread) -> Iterator[CompactionRow]:
    """The compactions of a thread, as far as it still holds them."""
    for made in thread.compactions:
        yield CompactionRow(
            session=watched.id,
            thread=thread.name,
            cycle=made.cycle,
            at=made.at,
            trigger=made.trigger,
            before=made.before,
            after=made.after,
            model=made.model,
            version=watched.folded.version or watched.version,
            inferred=made.inferred,
        )
