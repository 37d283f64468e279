"""Writes to the database: lists that are submitted together share a transaction."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from brimline.errors import StoreFailed
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
from brimline.store.common_sql import RowT
from brimline.store.sqlite import statements as sql
from brimline.store.sqlite.connections import store_failed
from brimline.store.sqlite.statements import SqliteTable

# These must survive a power cut once they are acknowledged; a reading is soon followed by another.
DURABLE_WRITES = (RecordSignal, CancelMessages, QueueMessage, MarkMessage, PutHandoff, UseHandoff)

# SQLite refuses a value: only its own list fails.
INVALID_VALUE_ERRORS = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.ProgrammingError,
    OverflowError,
    UnicodeEncodeError,
)

MAX_EVENT_KEYS = 200_000  # every hook has one: older keys are deleted

PRUNE_EVERY = 100  # old keys are deleted together: the search costs more than the deletion


class SqliteWrites:
    """Applies one list of writes.

    `changed` are the sessions changed in the transaction so far, with their new marks.
    """

    def __init__(
        self, connection: sqlite3.Connection, changed: Mapping[str, int] | None = None
    ) -> None:
        self._connection = connection
        self.changed = dict(changed or {})
        self._next_mark: int | None = None

    def apply(self, writes: Sequence[Write]) -> list[bool]:
        return apply_in_order(writes, self._apply_one)

    def mark_changes(self) -> None:
        """Give every changed session its new mark, after all lists are applied."""
        for change in self.changed.items():
            self._connection.execute(sql.MARK_CHANGED, change)

    def _apply_one(self, write: Write) -> bool:
        match write:
            case EventKeys(keys, at):
                return self._record_events(keys, at)
            case PutSession(row):
                return self._put(sql.SESSIONS, sql.PUT_SESSION, row, row.id)
            case PutThread(row):
                return self._put(sql.THREADS, sql.PUT_THREAD, row, row.session)
            case PutCall(row):
                values = (*sql.CALLS.values(row), self._new_mark(row.session))
                return self._execute(sql.PUT_CALL, values) and self._note_change(row.session)
            case PutCompaction(row):
                return self._put(sql.COMPACTIONS, sql.PUT_COMPACTION, row, row.session)
            case RecordSignal():
                return self._record_signal(write)
            case CancelMessages(session, thread, cycle):
                done = self._execute(sql.CANCEL_MESSAGES, (session, thread, cycle))
                return done and self._note_change(session)
            case QueueMessage(row):
                return self._put(sql.MESSAGES, sql.INSERT_MESSAGE, row, row.session)
            case MarkMessage():
                return self._mark_message(write)
            case MoveMessage(id, to):
                return self._move_message(id, to)
            case PutHandoff(row):
                return self._put(sql.HANDOFFS, sql.PUT_HANDOFF, row, row.session)
            case UseHandoff(id, at):
                done = self._execute(sql.USE_HANDOFF, (at, id))
                return done and self._note_owner_change(sql.SESSION_OF_HANDOFF, id)
            case PutCursor(name, position):
                return self._execute(sql.PUT_CURSOR, (name, position))
            case ExpectRevision(session, revision):
                return self._execute(sql.EXPECT_REVISION, (session, revision))
            case ClaimSession(session, machine):
                return self._claim(session, machine)
            case SetReceive():
                return self._set_receive(write)
            case ForgetSessions(before):
                return self._forget(before)

    def _execute(self, statement: str, values: Sequence[Any]) -> bool:
        return self._connection.execute(statement, values).rowcount > 0

    def _note_change(self, session: str) -> bool:
        if session not in self.changed:
            self.changed[session] = self._new_mark(session)
            self._next_mark = self.changed[session] + 1
        return True

    def _new_mark(self, session: str) -> int:
        """Return the mark that a session has after this transaction if it changes."""
        if session in self.changed:
            return self.changed[session]
        if self._next_mark is None:
            self._next_mark = 1 + max(self.changed.values(), default=self._last_mark())
        return self._next_mark

    def _last_mark(self) -> int:
        return self._connection.execute(sql.LAST_MARK).fetchone()[0]

    def _note_owner_change(self, statement: str, id: str) -> bool:
        return self._note_change(self._connection.execute(statement, (id,)).fetchone()[0])

    def _put(self, table: SqliteTable[RowT], statement: str, row: RowT, session: str) -> bool:
        return self._execute(statement, table.values(row)) and self._note_change(session)

    def _record_signal(self, write: RecordSignal) -> bool:
        if not self._put(sql.SIGNALS, sql.INSERT_SIGNAL, write.signal, write.signal.session):
            return False
        for message in write.messages:
            self._put(sql.MESSAGES, sql.INSERT_MESSAGE, message, message.session)
        return True

    def _record_events(self, keys: Sequence[str], at: float) -> bool:
        for place, key in enumerate(keys):
            if not self._record_event(key, at):
                self._connection.executemany(sql.DELETE_EVENT_KEY, [(key,) for key in keys[:place]])
                return False
        return True

    def _record_event(self, key: str, at: float) -> bool:
        inserted = self._connection.execute(sql.INSERT_EVENT_KEY, (key, at))
        if inserted.rowcount <= 0 or inserted.lastrowid is None:
            return False
        if inserted.lastrowid % PRUNE_EVERY == 0:
            self._connection.execute(sql.PRUNE_EVENT_KEYS, (inserted.lastrowid - MAX_EVENT_KEYS,))
        return True

    def _claim(self, session: str, machine: str) -> bool:
        if self._connection.execute(sql.MACHINE_OF_SESSION, (session,)).fetchone():
            return False
        for statement in sql.CLAIM_SESSION:
            self._connection.execute(statement, (session,))
        self._connection.execute(sql.SET_MACHINE, (machine, session))
        return self._note_change(session)

    def _set_receive(self, write: SetReceive) -> bool:
        values = (write.machine, write.receive)
        rows = self._connection.execute(sql.SESSIONS_WITH_OTHER_RECEIVE, values).fetchall()
        for (id,) in rows:
            self._connection.execute(sql.SET_RECEIVE, (write.receive, id))
            self._note_change(id)
        return bool(rows)

    def _forget(self, before: float) -> bool:
        old = self._connection.execute(sql.OLD_SESSIONS, (before,)).fetchall()
        if not old:
            return False
        self._connection.execute(sql.KEEP_MARK)
        for statement in sql.FORGET_SESSIONS:
            self._connection.execute(statement, (before,))
        for (session,) in old:
            self.changed.pop(session, None)
        return True

    def _move_message(self, id: str, to: str) -> bool:
        row = self._connection.execute(sql.SESSION_OF_MESSAGE, (id,)).fetchone()
        done = self._execute(sql.MOVE_MESSAGE, (to, id))
        return done and self._note_change(row[0]) and self._note_change(to)

    def _mark_message(self, mark: MarkMessage) -> bool:
        values = (mark.to, mark.to, mark.at, mark.text, mark.id, mark.handed_at, mark.handed_at,
                  *mark.since)  # fmt: skip
        done = bool(mark.since) and self._execute(sql.mark_message(len(mark.since)), values)
        return done and self._note_owner_change(sql.SESSION_OF_MESSAGE, mark.id)


class Writer:
    """Applies lists of writes, each completely or not at all."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._synchronous = ""

    def write_all(self, lists: Sequence[Sequence[Write]]) -> Sequence[list[bool] | StoreFailed]:
        """Return the effects of each list, or its error; if the transaction fails, all fail."""
        try:
            self._begin(lists)
            outcomes = self._write_each(lists)
            self._connection.execute("COMMIT")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if self._connection.in_transaction:  # the error may have ended it
                self._connection.execute("ROLLBACK")
            return [store_failed(self._path, error) for _ in lists]
        return outcomes

    def _begin(self, lists: Sequence[Sequence[Write]]) -> None:
        durable = any(isinstance(write, DURABLE_WRITES) for writes in lists for write in writes)
        synchronous = "FULL" if durable else "NORMAL"
        if synchronous != self._synchronous:
            self._connection.execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous
        self._connection.execute("BEGIN IMMEDIATE")

    def _write_each(self, lists: Sequence[Sequence[Write]]) -> list[list[bool] | StoreFailed]:
        """Apply the lists in order, then mark the sessions that changed."""
        outcomes: list[list[bool] | StoreFailed] = []
        last = SqliteWrites(self._connection)
        for writes in lists:
            applier = SqliteWrites(self._connection, last.changed)
            self._connection.execute("SAVEPOINT one")
            try:
                outcomes.append(applier.apply(writes))
                last = applier
            except INVALID_VALUE_ERRORS as error:
                self._connection.execute("ROLLBACK TO one")
                outcomes.append(store_failed(self._path, error))
            self._connection.execute("RELEASE one")
        last.mark_changes()
        return outcomes
