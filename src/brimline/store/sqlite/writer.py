"""Writes to the database: lists that are submitted together share a transaction."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from brimline.errors import StoreFailed
from brimline.store.base import (
    CancelMessages,
    MarkMessage,
    PutHandoff,
    QueueMessage,
    RecordSignal,
    UseHandoff,
    Write,
)
from brimline.store.sqlite.apply import WriteApplier
from brimline.store.sqlite.connections import store_failed

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
        last = WriteApplier(self._connection)
        for writes in lists:
            applier = WriteApplier(self._connection, last.changed)
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
