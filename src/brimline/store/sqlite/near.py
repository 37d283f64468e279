"""What is done at once, in the event loop's own thread: small reads, and light writes.

A read by its key takes some 10 us and handing it to another thread five times that. In WAL a reader
waits for nobody, and a commit with NORMAL waits for no disk; so nothing here holds the loop up.
"""

import sqlite3
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TypeVar, TypeVarTuple

from brimline.store.base import EventKey, PutCall, PutCompaction, PutSession, PutThread, Write
from brimline.store.sqlite.apply import Carrier
from brimline.store.sqlite.writer import REFUSED

LIGHT = frozenset({PutSession, PutThread, PutCall, PutCompaction, EventKey})
"""What may be written here: it need not outlive a power cut, and takes no longer for being old."""

SMALL = 16
"""So many writes, at most, are one list of these."""

IN_A_ROW, BURST = 16, 0.002
"""So many within so many seconds are a burst: then the thread has its turn, and others theirs.

What comes while it is at work is one transaction.
"""

FOLDED = 128
"""After so many writes one is left to the thread: it folds the log into the file, and waits for the
disk.
"""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Near:
    """Does what it can do at once; None says that it did nothing, and that the thread has to.

    Whatever does not go smoothly is left to the thread: it waits for others, and tells what fails.
    """

    def __init__(self, connection: sqlite3.Connection, burst: float = BURST) -> None:
        self._connection, self._burst = connection, burst
        self._asked = self._written = 0
        self._at = monotonic()

    def write(self, writes: Sequence[Write]) -> list[bool] | None:
        """Carry these out, unless they are weighty, or many, or somebody else writes just now."""
        if len(writes) > SMALL or not LIGHT.issuperset(map(type, writes)) or not self._may():
            return None
        self._written += 1
        if self._written % FOLDED == 0:
            return None
        try:
            return self._carried_out(writes)
        except (sqlite3.Error, UnicodeDecodeError, *REFUSED):
            return None

    def _carried_out(self, writes: Sequence[Write]) -> list[bool]:
        execute, carrier = self._connection.execute, Carrier(self._connection)
        try:
            execute("BEGIN IMMEDIATE")
            effects = carrier.carry_out(writes)
            carrier.mark()
            execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                execute("ROLLBACK")
        return effects

    def read(self, query: Callable[[sqlite3.Connection, *Ts], T], *values: *Ts) -> T | None:
        """What a query gives; it must be one that gives few rows."""
        if not self._may():
            return None
        try:
            return query(self._connection, *values)
        except (sqlite3.Error, UnicodeDecodeError):
            return None

    def version(self) -> int | None:
        """What changes with whatever another connection writes; None where it is not known."""
        try:
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:
            return None
        return version

    def _may(self) -> bool:
        self._asked += 1
        if self._asked % IN_A_ROW:
            return True
        before, self._at = self._at, monotonic()
        return self._at - before > self._burst


def never_wait(connection: sqlite3.Connection) -> None:
    """Make a connection one that waits neither for another's lock nor for the disk."""
    connection.execute("PRAGMA busy_timeout = 0")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
