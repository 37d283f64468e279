"""The store: one Protocol, and its implementations in memory and on SQLite."""
