"""What a store must do, written a second time with dicts: SQLite and PostgreSQL share SQL."""

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from brimline.context.events import MAIN
from brimline.context.inbox import BRIMLINE, PENDING_STATES, Message
from brimline.store.base import (
    CancelMessages,
    ClaimSession,
    EventKeys,
    ExpectRevision,
    ForgetSessions,
    MarkMessage,
    MoveMessage,
    PutCall,
    PutCompaction,
    PutCursor,
    PutHandoff,
    PutSession,
    PutThread,
    QueueMessage,
    RecordSignal,
    SetReceive,
    UseHandoff,
    Write,
    apply_in_order,
)
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow

RowT = TypeVar("RowT", SessionRow, CompactionRow)
KeyT = TypeVar("KeyT")
OwnedT = TypeVar("OwnedT", ThreadRow, CallRow, CompactionRow, SignalRow, Message, HandoffRow)


class StoreModel:
    """A store that is compared with the others after any sequence of writes."""

    def __init__(self) -> None:
        self._sessions: dict[str, SessionRow] = {}
        self._threads: dict[tuple[str, str], ThreadRow] = {}
        self._calls: dict[tuple[str, str, str], CallRow] = {}
        self._compactions: dict[tuple[str, str, int], CompactionRow] = {}
        self._signals: dict[tuple[str, str, int, str, float, int], SignalRow] = {}
        self._messages: dict[str, Message] = {}
        self._handoffs: dict[str, HandoffRow] = {}
        self._tables: list[dict[Any, Any]] = [
            self._threads, self._calls, self._compactions, self._signals, self._messages,
            self._handoffs,
        ]  # fmt: skip
        self._signal_positions: dict[tuple[str, str, int, str, float, int], int] = {}
        self._last_position = 0
        self._event_keys: set[str] = set()
        self._cursors: dict[str, int] = {}
        self._revisions: dict[str, int] = {}
        self._changes: dict[str, int] = {}
        self._mark = 0
        self._order = 0

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        return apply_in_order(writes, self._apply)

    async def sessions(self) -> list[SessionRow]:
        return sorted(self._sessions.values(), key=lambda row: (-row.seen_at, row.id))

    async def session(self, id: str) -> SessionRow | None:
        return self._sessions.get(id)

    async def threads(self, session: str | None = None) -> list[ThreadRow]:
        rows = [row for row in self._threads.values() if session in (None, row.session)]
        return sorted(rows, key=lambda row: (row.session, row.thread))

    async def main_threads(self, seen_since: float) -> list[tuple[SessionRow, ThreadRow]]:
        rows = [row for row in self._sessions.values() if row.seen_at >= seen_since]
        mains = [(row, self._threads.get((row.id, MAIN))) for row in rows]
        return [(row, main) for row, main in mains if main is not None]

    async def calls(self, session: str, thread: str | None = None) -> list[CallRow]:
        rows = [row for row in self._calls.values() if row.session == session]
        rows = [row for row in rows if thread in (None, row.thread)]
        return sorted(rows, key=lambda row: (row.thread, row.cycle, row.seq, row.call))

    async def costs(self, session: str | None = None) -> dict[str, float]:
        costs: dict[str, float] = {}
        for row in self._calls.values():
            if row.cost is not None and session in (None, row.session):
                costs[row.session] = costs.get(row.session, 0.0) + row.cost
        return costs

    async def copied_calls(self, session: str, calls: Sequence[str]) -> set[str]:
        rows = self._calls.values()
        firsts = {row.session for row in rows if row.seq == 0 and row.call in calls[:1]} - {session}
        summed = (row for row in rows if row.counted or row.cost is not None)
        return {row.call for row in summed if row.session in firsts}.intersection(calls)

    async def compactions(self, session: str | None = None) -> list[CompactionRow]:
        rows = [row for row in self._compactions.values() if session in (None, row.session)]
        return sorted(rows, key=lambda row: (row.session, row.thread, row.cycle))

    async def signals(self, session: str | None = None) -> list[SignalRow]:
        return [row for row in self._signals.values() if session in (None, row.session)]

    async def signals_after(self, position: int, limit: int) -> list[tuple[int, SignalRow]]:
        rows = [(self._signal_positions[key], row) for key, row in self._signals.items()]
        return [each for each in rows if each[0] > position][:limit]

    async def messages(self, session: str | None = None) -> list[Message]:
        return [row for row in self._messages.values() if session in (None, row.session)]

    async def pending_messages(self, session: str | None = None) -> list[Message]:
        return [row for row in await self.messages(session) if row.state in PENDING_STATES]

    async def machine_deliveries(
        self, machine: str, since: float
    ) -> tuple[list[Message], list[HandoffRow]]:
        pending = [row for row in await self.pending_messages() if row.sender != BRIMLINE]
        messages = [row for row in pending if self._is_of(row, machine)]
        rows = [row for row in self._handoffs.values() if self._is_of(row, machine)]
        unused = [row for row in rows if row.text and row.used_at is None and row.at >= since]
        return messages, unused

    def _is_of(self, row: Message | HandoffRow, machine: str) -> bool:
        session = self._sessions.get(row.session)
        return session is not None and session.machine == machine

    async def last_handoffs(self, session: str | None = None) -> list[HandoffRow]:
        last = {row.session: row.id for row in self._handoffs.values()}
        rows = [row for row in reversed(self._handoffs.values()) if last[row.session] == row.id]
        return [replace(row, text="") for row in rows if session in (None, row.session)]

    async def handoffs(self, session: str) -> list[HandoffRow]:
        return [row for row in reversed(self._handoffs.values()) if row.session == session]

    async def known_events(self, keys: Sequence[str]) -> set[str]:
        return self._event_keys.intersection(keys)

    async def cursor(self, name: str) -> int:
        return self._cursors.get(name, 0)

    async def revision(self, session: str) -> int:
        return self._revisions.get(session, 0)

    async def changes(self, after: int = 0, seen_since: float = 0.0) -> list[tuple[int, str]]:
        recent = {id for id, row in self._sessions.items() if row.seen_at >= seen_since}
        return sorted(
            (mark, session)
            for session, mark in self._changes.items()
            if mark > after and (not seen_since or session in recent)
        )

    async def close(self) -> None:
        pass

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
                return self._cancel_messages(write)
            case QueueMessage(message):
                return self._queue(message)
            case MarkMessage():
                return self._mark_message(write)
            case MoveMessage(id, to):
                return self._move_message(id, to)
            case PutHandoff(row):
                return row.id not in self._handoffs and self._put(self._handoffs, row.id, row)
            case UseHandoff(id, at):
                row = self._handoffs.get(id)
                if row is None or (row.used_at or 0.0) >= at:
                    return False
                return self._put(self._handoffs, id, replace(row, used_at=at))
            case EventKeys(keys):
                are_new = self._event_keys.isdisjoint(keys)
                self._event_keys.update(keys if are_new else ())
                return are_new
            case PutCursor(name, position):
                is_later = position > self._cursors.get(name, 0)
                if is_later:
                    self._cursors[name] = position
                return is_later
            case ExpectRevision(session, revision):
                is_expected = self._revisions.get(session, 0) == revision
                return is_expected and self._advance_revision(session)
            case ClaimSession(session, machine):
                return self._claim(session, machine)
            case SetReceive(machine, receive):
                rows = [row for row in self._sessions.values() if row.machine == machine]
                return sum(self._put_session(replace(row, receive=receive)) for row in rows) > 0
            case ForgetSessions(before):
                return self._forget(before)

    def _note_change(self, session: str) -> bool:
        self._mark += 1
        self._changes[session] = self._mark
        return True

    def _put(self, rows: dict[KeyT, OwnedT], key: KeyT, row: OwnedT) -> bool:
        rows[key] = row
        return self._note_change(row.session)

    def _put_session(self, row: SessionRow) -> bool:
        old = self._sessions.get(row.id)
        if old is not None:
            row = _fill(
                old,
                row,
                seen_at=max(old.seen_at, row.seen_at),
                is_fork=old.is_fork or row.is_fork,
            )
        self._sessions[row.id] = row
        return row != old and self._note_change(row.id)

    def _put_thread(self, row: ThreadRow) -> bool:
        key = (row.session, row.thread)
        old = self._threads.get(key)
        is_later = old is None or (row.cycle, row.seq) > (old.cycle, old.seq)
        return is_later and self._put(self._threads, key, row)

    def _put_call(self, row: CallRow) -> bool:
        key = (row.session, row.thread, row.call)
        old = self._calls.get(key)
        is_later = old is None or (row.cycle, row.seq) >= (old.cycle, old.seq)
        return is_later and row != old and self._put(self._calls, key, row)

    def _put_compaction(self, row: CompactionRow) -> bool:
        key = (row.session, row.thread, row.cycle)
        old = self._compactions.get(key)
        if old is not None:
            inferred, overflow = old.inferred and row.inferred, old.overflow or row.overflow
            row = _fill(old, row, inferred=inferred, overflow=overflow)
        return row != old and self._put(self._compactions, key, row)

    def _record_signal(self, write: RecordSignal) -> bool:
        row = write.signal
        key = (row.session, row.thread, row.cycle, row.kind, row.level, row.arm)
        if key in self._signals:
            return False
        for message in write.messages:
            self._queue(message)
        self._last_position += 1
        self._signal_positions[key] = self._last_position
        return self._put(self._signals, key, row)

    def _cancel_messages(self, write: CancelMessages) -> bool:
        cancelled = [
            row
            for row in self._messages.values()
            if (row.session, row.thread) == (write.session, write.thread)
            and row.state in PENDING_STATES
            and row.cycle is not None
            and row.cycle <= write.cycle
        ]
        for row in cancelled:
            self._put(self._messages, row.id, replace(row, state="cancelled"))
        return bool(cancelled)

    def _queue(self, message: Message) -> bool:
        if message.id in self._messages:
            return False
        self._order += 1
        return self._put(self._messages, message.id, replace(message, order=self._order))

    def _mark_message(self, mark: MarkMessage) -> bool:
        old = self._messages.get(mark.id)
        if old is None or old.state not in mark.since:
            return False
        if mark.handed_at not in (None, old.handed_at):
            return False
        handed_at = mark.at if mark.to == "handed" else old.handed_at
        text = old.text if mark.text is None else mark.text
        marked = replace(old, state=mark.to, handed_at=handed_at, text=text)
        return self._put(self._messages, old.id, marked)

    def _move_message(self, id: str, to: str) -> bool:
        old = self._messages.get(id)
        if old is None or old.state != "queued" or old.session == to:
            return False
        self._note_change(old.session)
        return self._put(self._messages, id, replace(old, session=to))

    def _advance_revision(self, session: str) -> bool:
        self._revisions[session] = self._revisions.get(session, 0) + 1
        return True

    def _claim(self, session: str, machine: str) -> bool:
        row = self._sessions.get(session)
        if row is not None:
            if row.machine is not None:
                return False
            self._sessions[session] = replace(row, machine=machine)
        self._delete({session}, self._threads, self._calls, self._compactions)
        return self._advance_revision(session) and self._note_change(session)

    def _forget(self, before: float) -> bool:
        ids = {row.id for row in self._sessions.values() if row.seen_at < before}
        for id in ids:
            del self._sessions[id]
            self._changes.pop(id, None)
            self._revisions.pop(id, None)
        self._delete(ids, *self._tables)
        return bool(ids)

    def _delete(self, sessions: set[str], *tables: dict[Any, Any]) -> None:
        for rows in tables:
            for key in [key for key, row in rows.items() if row.session in sessions]:
                del rows[key]


def _fill(old: RowT, row: RowT, **changes: object) -> RowT:
    """Return the old row with the new values that are not None."""
    new = {name: value for name, value in asdict(row).items() if value is not None}
    return replace(old, **new | changes)
