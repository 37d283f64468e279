"""The store of one machine: a SQLite file, with one connection that owns all writes."""

from brimline.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
