"""The connection that writes: lists that wait at the same time share a transaction."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from brimline.store.base import (
    CancelMessages,
    MarkMessage,
    PutHandoff,
    QueueMessage,
    RecordSignal,
    UseHandoff,
    Write,
)
from brimline.store.failures import StoreFailed
from brimline.store.sqlite.apply import WriteApplier
from brimline.store.sqlite.connections import store_failed

DURABLE_WRITES = (RecordSignal, CancelMessages, QueueMessage, MarkMessage, PutHandoff, UseHandoff)
# These must survive a power cut once they are acknowledged; a reading is soon followed by another.

INVALID_VALUE_ERRORS = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.ProgrammingError,
    OverflowError,
    UnicodeEncodeError,
)
# A value that SQLite refuses: only its own list fails.


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
            self._roll_back()
            return [store_failed(self._path, error) for _ in lists]
        return outcomes

    def _begin(self, lists: Sequence[Sequence[Write]]) -> None:
        weighty = any(isinstance(write, DURABLE_WRITES) for writes in lists for write in writes)
        wanted = "FULL" if weighty else "NORMAL"
        if wanted != self._synchronous:
            self._connection.execute(f"PRAGMA synchronous = {wanted}")
            self._synchronous = wanted
        self._connection.execute("BEGIN IMMEDIATE")

    def _roll_back(self) -> None:
        """Roll back, unless the error has ended the transaction already."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _write_each(self, lists: Sequence[Sequence[Write]]) -> list[list[bool] | StoreFailed]:
        """Apply the lists in order, then mark the sessions that changed."""
        outcomes: list[list[bool] | StoreFailed] = []
        last = WriteApplier(self._connection)
        for writes in lists:
            carrier = WriteApplier(self._connection, last.changed)
            outcomes.append(outcome := self._write_list(writes, carrier))
            if not isinstance(outcome, StoreFailed):
                last = carrier
        last.mark_changes()
        return outcomes

    def _write_list(
        self, writes: Sequence[Write], carrier: WriteApplier
    ) -> list[bool] | StoreFailed:
        self._connection.execute("SAVEPOINT one")
        try:
            effects = carrier.apply(writes)
        except INVALID_VALUE_ERRORS as error:
            self._connection.execute("ROLLBACK TO one")
            self._connection.execute("RELEASE one")
            return store_failed(self._path, error)
        self._connection.execute("RELEASE one")
        return effects
