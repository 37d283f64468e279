"""Goose's SQLite database: its sessions, their messages, and what each call was billed."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from brimline.agents.transcripts.database import (
    ask,
    bytes_value,
    float_value,
    int_value,
    text_value,
)
from brimline.agents.transcripts.source import parse_time
from brimline.context.usage import Usage, from_subset
from brimline.errors import UnreadableTranscript

PAGE = 500  # messages per query

SESSIONS = """
    SELECT id, name, session_type, parent_session_id, working_dir, provider_name,
        updated_at || '+00:00',
        CASE WHEN json_valid(recipe_json) THEN json_extract(recipe_json, '$.prompt') END,
        (SELECT max(usage_ledger.id) FROM usage_ledger WHERE session_id = sessions.id)
    FROM sessions
"""
LEDGER = """
    SELECT id, created_timestamp, model, input_tokens, ifnull(cache_read_tokens, 0),
        ifnull(cache_write_tokens, 0), output_tokens, cost, cost_source, is_compaction
    FROM usage_ledger WHERE session_id = ? AND id > ? ORDER BY id
"""
MESSAGES = """
    SELECT id, message_id, role, created_timestamp, content_json, ifnull(metadata_json, '{}')
    FROM messages WHERE session_id = ? AND id > ? ORDER BY id LIMIT ?
"""


class GooseSession(msgspec.Struct, frozen=True):
    """A session; `parent` is the one that started it as a subagent, with a `task`.

    `updated` differs after each call, and is not before a run that began in its second: the
    database has whole seconds, and the id of the last call makes the fraction.
    """

    id: str
    name: str | None = None
    parent: str | None = None
    folder: str | None = None
    provider: str | None = None
    updated: float | None = None
    task: str | None = None


class LedgerRow(msgspec.Struct, frozen=True):
    """What one call was billed; `input` includes what was read from the cache and written to it."""

    id: int
    at: float | None
    model: str | None
    input: object
    cache_read: int
    cache_write: int
    output: object
    cost: float | None
    is_compaction: bool

    @property
    def usage(self) -> Usage | None:
        """None if the provider reported none; raises an error of MALFORMED."""
        if not (isinstance(self.input, int) and isinstance(self.output, int)):
            return None
        return from_subset(self.input, self.cache_read, self.cache_write, self.output)


class GooseMessage(NamedTuple):
    """A stored message; `content` and `metadata` are JSON."""

    id: str
    role: str
    at: int
    content: bytes
    metadata: bytes


def read_sessions(path: str) -> list[GooseSession]:
    """Return all sessions; raises UnreadableTranscript."""
    return ask(path, lambda opened: _sessions(opened, SESSIONS))


def read_ledger(path: str, session: str, after: int) -> tuple[GooseSession, list[LedgerRow]]:
    """Return a session, and its rows that have larger ids; raises UnreadableTranscript."""

    def query(opened: sqlite3.Connection) -> tuple[GooseSession, list[LedgerRow]]:
        infos = _sessions(opened, f"{SESSIONS} WHERE id = ?", session)
        if not infos:
            raise UnreadableTranscript(path, f"it has no session {session!r}")
        rows = opened.execute(LEDGER, (session, after))
        return infos[0], [_ledger_row(row) for row in rows]

    return ask(path, query)


def read_messages(path: str, session: str) -> Iterator[GooseMessage]:
    """Yield the messages of a session, in order; raises UnreadableTranscript."""
    after = -1
    while page := ask(
        path,
        lambda opened, after=after: opened.execute(MESSAGES, (session, after, PAGE)).fetchall(),
    ):
        for _, id, role, at, content, metadata in page:
            texts = (text_value(id) or "", text_value(role) or "")
            yield GooseMessage(*texts, int_value(at), bytes_value(content), bytes_value(metadata))
        after = page[-1][0]


def has_ledger(path: str) -> bool:
    """Whether a database is Goose's; raises UnreadableTranscript."""
    select = "SELECT 1 FROM sqlite_master WHERE name = 'usage_ledger'"
    return ask(path, lambda opened: opened.execute(select).fetchone() is not None)


def _sessions(opened: sqlite3.Connection, query: str, *values: str) -> list[GooseSession]:
    return [_session(row) for row in opened.execute(query, values)]


def _session(row: Sequence[object]) -> GooseSession:
    id, name, kind, parent, folder, provider, updated, task = map(text_value, row[:-1])
    second = parse_time(updated)
    at = None if second is None else second + 0.9 + int_value(row[-1]) % 1_000 / 10_000
    if kind != "sub_agent":
        parent = task = None
    return GooseSession(id or "", name, parent, folder, provider, at, task)


def _ledger_row(row: Sequence[object]) -> LedgerRow:
    id, created, model, sent, read, written, output, cost, cost_source, is_compaction = row
    seconds = float_value(created)
    at = None if seconds is None else parse_time(1_000 * seconds)
    return LedgerRow(
        id=int_value(id),
        at=None if at is None else at + 0.999,  # it has whole seconds: not before a run began
        model=text_value(model),
        input=sent,
        cache_read=int_value(read),
        cache_write=int_value(written),
        output=output,
        cost=None if text_value(cost_source) == "estimated" else float_value(cost),
        is_compaction=bool(is_compaction),
    )
