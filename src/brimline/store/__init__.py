"""The store: one Protocol, and its implementations on SQLite and on PostgreSQL.

Rows come in and go out; what they mean, and when they are written, belongs to `monitor/`.
"""
