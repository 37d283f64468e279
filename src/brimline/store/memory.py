"""The reference implementation, in memory. Every other store behaves the same."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from brimline.inbox import Message
from brimline.store.base import (
    CancelMessages,
    EventKey,
    ForgetSessions,
    MarkMessage,
    MoveMessage,
    PutCall,
    PutCompaction,
    PutHandoff,
    PutSession,
    PutThread,
    QueueMessage,
    RecordSignal,
    UseHandoff,
    Write,
)
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow

PENDING_STATES = ("queued", "handed")  # a message can still be cancelled

RowT = TypeVar("RowT", SessionRow, CompactionRow)
KeyT = TypeVar("KeyT")
OwnedT = TypeVar("OwnedT", ThreadRow, CallRow, CompactionRow, SignalRow, Message, HandoffRow)


class MemoryStore:
    """A store for tests and for a single run; it ends with the process."""

    def __init__(self) -> None:
        self._sessions: dict[str, SessionRow] = {}
        self._threads: dict[tuple[str, str], ThreadRow] = {}
        self._calls: dict[tuple[str, str, str], CallRow] = {}
        self._compactions: dict[tuple[str, str, int], CompactionRow] = {}
        self._signals: dict[tuple[str, str, int, str, float, int], SignalRow] = {}
        self._messages: dict[str, Message] = {}
        self._handoffs: dict[str, HandoffRow] = {}
        self._once: set[str] = set()
        self._changes: dict[str, int] = {}
        self._mark = 0
        self._order = 0

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        effects = [False] * len(writes)
        for place, write in enumerate(writes):
            effects[place] = self._apply(write)
            if isinstance(write, EventKey) and not effects[place]:
                break
        return effects

    async def sessions(self) -> list[SessionRow]:
        return sorted(self._sessions.values(), key=lambda row: (-row.seen_at, row.id))

    async def session(self, id: str) -> SessionRow | None:
        return self._sessions.get(id)

    async def threads(self, session: str | None = None) -> list[ThreadRow]:
        rows = [row for row in self._threads.values() if session in (None, row.session)]
        return sorted(rows, key=lambda row: (row.session, row.thread))

    async def calls(self, session: str, thread: str | None = None) -> list[CallRow]:
        mine = [row for row in self._calls.values() if row.session == session]
        rows = [row for row in mine if thread in (None, row.thread)]
        return sorted(rows, key=lambda row: (row.thread, row.cycle, row.seq, row.call))

    async def compactions(self, session: str | None = None) -> list[CompactionRow]:
        rows = [row for row in self._compactions.values() if session in (None, row.session)]
        return sorted(rows, key=lambda row: (row.session, row.thread, row.cycle))

    async def signals(self, session: str | None = None) -> list[SignalRow]:
        return [row for row in self._signals.values() if session in (None, row.session)]

    async def messages(self, session: str | None = None) -> list[Message]:
        return [row for row in self._messages.values() if session in (None, row.session)]

    async def pending_messages(self, session: str | None = None) -> list[Message]:
        return [row for row in await self.messages(session) if row.state in PENDING_STATES]

    async def last_handoffs(self, session: str | None = None) -> list[HandoffRow]:
        mine = [row for row in self._handoffs.values() if session in (None, row.session)]
        last = {row.session: row.id for row in mine}
        rows = [row for row in reversed(mine) if last[row.session] == row.id]
        return [msgspec.structs.replace(row, text="") for row in rows]

    async def handoffs(self, session: str) -> list[HandoffRow]:
        return [row for row in reversed(self._handoffs.values()) if row.session == session]

    async def has_event(self, key: str) -> bool:
        return key in self._once

    async def changes(self, after: int = 0) -> list[tuple[int, str]]:
        return sorted((mark, session) for session, mark in self._changes.items() if mark > after)

    async def close(self) -> None:
        """Nothing is under way here."""

    def _apply(self, write: Write) -> bool:
        match write:
            case PutSession(row):
                return self._put_session(row)
            case PutThread(row):
                return self._put_thread(row)
            case PutCall(row):
                return self._put_call(row)
            case PutCompaction(row):
                return self._put_compaction(row)
            case RecordSignal():
                return self._record_signal(write)
            case CancelMessages():
                return self._cancel(write)
            case QueueMessage(message):
                return self._queue(message)
            case MarkMessage():
                return self._mark_message(write)
            case MoveMessage():
                return self._move(write)
            case PutHandoff(row):
                return self._put_handoff(row)
            case UseHandoff():
                return self._use_handoff(write)
            case EventKey(key):
                return self._remember(key)
            case ForgetSessions(before):
                return self._forget(before)

    def _changed(self, session: str) -> bool:
        self._mark += 1
        self._changes[session] = self._mark
        return True

    def _put_session(self, row: SessionRow) -> bool:
        old = self._sessions.get(row.id)
        if old is not None:
            row = _filled(old, row, seen_at=max(old.seen_at, row.seen_at))
        self._sessions[row.id] = row
        return row != old and self._changed(row.id)

    def _put_thread(self, row: ThreadRow) -> bool:
        key = (row.session, row.thread)
        old = self._threads.get(key)
        if old is not None and (row.cycle, row.seq) <= (old.cycle, old.seq):
            return False
        self._threads[key] = row
        return self._changed(row.session)

    def _put_call(self, row: CallRow) -> bool:
        key = (row.session, row.thread, row.call)
        old = self._calls.get(key)
        if old == row or (old is not None and (row.cycle, row.seq) < (old.cycle, old.seq)):
            return False
        self._calls[key] = row
        return self._changed(row.session)

    def _put_compaction(self, row: CompactionRow) -> bool:
        key = (row.session, row.thread, row.cycle)
        old = self._compactions.get(key)
        if old is not None:
            row = _filled(old, row, inferred=old.inferred and row.inferred)
        self._compactions[key] = row
        return row != old and self._changed(row.session)

    def _record_signal(self, fire: RecordSignal) -> bool:
        row = fire.signal
        key = (row.session, row.thread, row.cycle, row.kind, row.level, row.arm)
        if key in self._signals:
            return False
        self._signals[key] = row
        for message in fire.messages:
            self._queue(message)
        return self._changed(row.session)

    def _cancel(self, end: CancelMessages) -> bool:
        mine = [row for row in self._messages.values() if row.session == end.session]
        ended = [row for row in mine if row.thread == end.thread and _of(row, end.cycle)]
        for row in ended:
            self._messages[row.id] = msgspec.structs.replace(row, state="cancelled")
        return bool(ended) and self._changed(end.session)

    def _queue(self, message: Message) -> bool:
        if message.id in self._messages:
            return False
        self._order += 1
        self._messages[message.id] = msgspec.structs.replace(message, order=self._order)
        return self._changed(message.session)

    def _mark_message(self, mark: MarkMessage) -> bool:
        old = self._messages.get(mark.id)
        if old is None or old.state not in mark.since:
            return False
        if mark.handed_at not in (None, old.handed_at):
            return False
        handed_at = mark.at if mark.to == "handed" else old.handed_at
        self._messages[mark.id] = msgspec.structs.replace(old, state=mark.to, handed_at=handed_at)
        return self._changed(old.session)

    def _move(self, move: MoveMessage) -> bool:
        old = self._messages.get(move.id)
        if old is None or old.state != "queued" or old.session == move.to:
            return False
        self._messages[move.id] = msgspec.structs.replace(old, session=move.to)
        return self._changed(old.session) and self._changed(move.to)

    def _put_handoff(self, row: HandoffRow) -> bool:
        if row.id in self._handoffs:
            return False
        self._handoffs[row.id] = row
        return self._changed(row.session)

    def _use_handoff(self, use: UseHandoff) -> bool:
        old = self._handoffs.get(use.id)
        if old is None or (old.used_at or 0.0) >= use.at:
            return False
        self._handoffs[use.id] = msgspec.structs.replace(old, used_at=use.at)
        return self._changed(old.session)

    def _remember(self, key: str) -> bool:
        new = key not in self._once
        self._once.add(key)
        return new

    def _forget(self, before: float) -> bool:
        ids = {row.id for row in self._sessions.values() if row.seen_at < before}
        self._sessions = {id: row for id, row in self._sessions.items() if id not in ids}
        self._threads = _without(self._threads, ids)
        self._calls = _without(self._calls, ids)
        self._compactions = _without(self._compactions, ids)
        self._signals = _without(self._signals, ids)
        self._messages = _without(self._messages, ids)
        self._handoffs = _without(self._handoffs, ids)
        self._changes = {id: mark for id, mark in self._changes.items() if id not in ids}
        return bool(ids)


def _of(message: Message, cycle: int) -> bool:
    """Whether a message belongs to a cycle up to this one, and is still on its way."""
    return message.state in PENDING_STATES and message.cycle is not None and message.cycle <= cycle


def _filled(old: RowT, row: RowT, **given: object) -> RowT:
    """Return the old row with the new values that are not None."""
    changed = {
        name: value for name, value in msgspec.structs.asdict(row).items() if value is not None
    }
    return msgspec.structs.replace(old, **changed | given)


def _without(rows: dict[KeyT, OwnedT], sessions: set[str]) -> dict[KeyT, OwnedT]:
    return {key: row for key, row in rows.items() if row.session not in sessions}
