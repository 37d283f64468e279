"""The one connection that writes: lists that wait at the same time are one transaction."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from brimline.store.base import Cancel, Fire, Mark, PutHandoff, Queue, UseHandoff, Write
from brimline.store.failures import StoreFailed
from brimline.store.sqlite import statements as sql
from brimline.store.sqlite.carry import Carrier
from brimline.store.sqlite.place import failed

WEIGHTY = (Fire, Cancel, Queue, Mark, PutHandoff, UseHandoff)
"""What must outlive a power cut once it is acknowledged; a reading is soon followed by another."""

_REFUSED = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.ProgrammingError,
    OverflowError,
    UnicodeEncodeError,
)
"""A value that SQLite does not take: the fault of one list, not of those beside it."""


class Writer:
    """Carries out lists of writes, each of them wholly or not at all."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._synchronous = ""

    def together(self, lists: Sequence[Sequence[Write]]) -> Sequence[list[bool] | StoreFailed]:
        """What became of each list; where the transaction fails, nothing of any."""
        try:
            self._begin(lists)
            changed: dict[str, None] = {}
            outcomes = [self._one(writes, changed) for writes in lists]
            for session in changed:
                self._connection.execute(sql.CHANGED, (session,))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            return [failed(self._path, error) for _ in lists]
        return outcomes

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _begin(self, lists: Sequence[Sequence[Write]]) -> None:
        weighty = any(isinstance(write, WEIGHTY) for writes in lists for write in writes)
        wanted = "FULL" if weighty else "NORMAL"
        if wanted != self._synchronous:
            self._connection.execute(f"PRAGMA synchronous = {wanted}")
            self._synchronous = wanted
        self._connection.execute("BEGIN IMMEDIATE")

    def _undo(self) -> None:
        """Some errors end a transaction by themselves, others leave it open."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _one(self, writes: Sequence[Write], changed: dict[str, None]) -> list[bool] | StoreFailed:
        carrier = Carrier(self._connection)
        self._connection.execute("SAVEPOINT one")
        try:
            effects = carrier.carry_out(writes)
        except _REFUSED as error:
            self._connection.execute("ROLLBACK TO one")
            self._connection.execute("RELEASE one")
            return failed(self._path, error)
        self._connection.execute("RELEASE one")
        changed.update(carrier.changed)
        return effects
