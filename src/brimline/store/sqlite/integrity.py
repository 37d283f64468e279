"""Checks of a database's content, bounded in time; SQLite does the work without Python's lock."""

import math
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from brimline.store.sqlite.quarantine import table_names

_INTERRUPT_EVERY_S = 0.02
_TYPES = {"TEXT": "text", "INTEGER": "integer", "REAL": "real", "BOOLEAN": "integer"}
_GROUPED = ("calls", "threads", "compactions")  # the tables whose key begins with the session


def check_pages(connection: sqlite3.Connection, pragma: str = "quick_check") -> str | None:
    """Return the first damage of pages and rows; `integrity_check` includes the indexes."""
    (result,) = connection.execute(f"PRAGMA {pragma}(1)").fetchone()
    return None if result == "ok" else result


def check_values(connection: sqlite3.Connection) -> str | None:
    """Return the first table with a value of another type than its column's.

    Raises as SQLite does if a text is not UTF-8: SQLite itself accepts any bytes as a text.
    """
    for table in table_names(connection):
        for _, wrong in connection.execute(_values_query(connection, table)):
            if wrong:
                return f"a value in the table {table} has the wrong type"
    return None


@contextmanager
def interrupted(
    connection: sqlite3.Connection, stop: threading.Event, after_s: float = math.inf
) -> Generator[None]:
    """Interrupt the statements of a connection after a time, or when `stop` is set."""
    done = threading.Event()
    end = time.monotonic() + after_s

    def interrupt() -> None:
        # Again and again: an interrupt between two statements has no effect.
        while not done.wait(_INTERRUPT_EVERY_S):
            if stop.is_set() or time.monotonic() >= end:
                connection.interrupt()

    watcher = threading.Thread(target=interrupt, name="brimline-store-interrupt", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _values_query(connection: sqlite3.Connection, table: str) -> str:
    """Join texts and count wrong types, so that Python decodes few long texts instead of many.

    Rows are joined by session if the table is stored in that order; 3.8 s instead of 5.6 s for
    200 MB of calls, and the daemon's other threads run meanwhile.
    """
    columns = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    texts = [
        f'"{name}"' if strict else f"coalesce(\"{name}\", '')"
        for _, name, kind, strict, *_ in columns
        if kind == "TEXT"
    ]
    wrong = [_wrong_type(name, kind, bool(strict)) for _, name, kind, strict, *_ in columns]
    joined, count = " || ".join(texts) or "''", " OR ".join(wrong)
    if table in _GROUPED:
        joined, count = f"group_concat({joined}, '')", f"total({count})"
    order = " GROUP BY session" if table in _GROUPED else ""
    return f'SELECT {joined}, {count} FROM "{table}"{order}'


def _wrong_type(name: str, kind: str, strict: bool) -> str:
    if kind not in _TYPES:
        return "FALSE"
    allowed = f"'{_TYPES[kind]}'" if strict else f"'{_TYPES[kind]}', 'null'"
    return f'typeof("{name}") NOT IN ({allowed})'
