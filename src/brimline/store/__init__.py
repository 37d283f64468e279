"""The store: one Protocol, and its implementations in memory, on SQLite and on PostgreSQL."""
