"""The store of one machine: a SQLite file, with one connection that owns all writes.

`MemoryStore` is the same on a database in memory.
"""

from brimline.store.sqlite.store import MemoryStore, SqliteStore

__all__ = ["MemoryStore", "SqliteStore"]
