"""opencode's SQLite database: its sessions, and the messages of each."""

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from brimline.agents.opencode.conversation import MessageRow, StoredMessage, StoredPart
from brimline.agents.opencode.records import OpencodePart, Revert, SessionInfo, Times
from brimline.agents.transcripts.database import (
    ask,
    bytes_value,
    float_value,
    int_value,
    text_value,
)
from brimline.agents.transcripts.source import parse_branch
from brimline.errors import UnreadableTranscript
from brimline.files.foreign_json import JsonDecoder

PAGE = 500  # messages, or parts, per query

BEGINNING = (-1, "")  # the place before the first message

# Where a message stands: the time of its creation and its id, as the database has them. Decoded,
# damaged ones would sort elsewhere, and reading on from there would never end.
Place: TypeAlias = tuple[object, ...]
Page: TypeAlias = list[tuple[Place, MessageRow]]

OPTIONAL = ("parent_id", "directory", "title", "version", "revert", "time_created", "time_updated")

WORKSPACE_BRANCH = "(SELECT branch FROM workspace WHERE workspace.id = session.workspace_id)"

_part = JsonDecoder(OpencodePart)
_revert = JsonDecoder(Revert)

MESSAGES = """
    SELECT id, time_created, time_updated, data FROM message
    WHERE session_id = ? AND time_updated >= ? AND (time_created, id) > (?, CAST(? AS TEXT))
    ORDER BY time_created, id LIMIT ?
"""


PARTS = """
    SELECT message.time_created, message.id, ifnull(part.id, ''), message.data, part.data
    FROM message LEFT JOIN part ON part.message_id = message.id
    WHERE message.session_id = ?
        AND (message.time_created, message.id, ifnull(part.id, ''))
            > (?, CAST(? AS TEXT), CAST(? AS TEXT))
    ORDER BY message.time_created, message.id, part.id LIMIT ?
"""


class PartRow(NamedTuple):
    """A part of a message, None if the message has none, with the message's id and JSON."""

    message: str
    message_data: bytes
    part: StoredPart | None


def sessions(path: str) -> list[SessionInfo]:
    return ask(path, lambda opened: [*_sessions(opened, "")])


def read_parts(path: str, session: str) -> Iterator[PartRow]:
    """Yield the parts of a session's messages, in order; raises UnreadableTranscript."""
    place: Place = (*BEGINNING, "")
    while page := ask(path, lambda opened, at=place: _query_parts(opened, session, at)):
        for _, message, id, data, part in page:
            stored = StoredPart(text_value(id), part) if isinstance(part, bytes) else None
            yield PartRow(text_value(message) or "", bytes_value(data), stored)
        place = page[-1][:3]


def _query_parts(
    opened: sqlite3.Connection, session: str, place: Place
) -> list[tuple[object, ...]]:
    return opened.execute(PARTS, (session, *place, PAGE)).fetchall()


class DatabaseHistory:
    """One session of a database; a MessageHistory."""

    def __init__(self, path: str, session: str) -> None:
        self._path, self._session = path, session

    def changed(self, since: int) -> tuple[SessionInfo, Iterator[MessageRow]]:
        # by one connection: to open the database takes longer than to query it
        infos, page = ask(
            self._path, lambda opened: (self._infos(opened), self._page(opened, since))
        )
        if not infos:
            raise UnreadableTranscript(self._path, f"it has no session {self._session!r}")
        return infos[0], self._from(page, since)

    def every(self) -> Iterator[MessageRow]:
        return self._from(ask(self._path, lambda opened: self._page(opened, 0)), 0)

    def parts(self, message: str) -> list[OpencodePart]:
        select = "SELECT data FROM part WHERE message_id = ?"
        rows = ask(self._path, lambda opened: opened.execute(select, (message,)).fetchall())
        return [part for (data,) in rows if (part := _part.decode_or_none(bytes_value(data)))]

    def messages(self) -> Iterator[StoredMessage]:
        rows = read_parts(self._path, self._session)
        for (id, data), group in groupby(rows, itemgetter(0, 1)):
            yield StoredMessage(id, data, [row.part for row in group if row.part is not None])

    def _infos(self, opened: sqlite3.Connection) -> list[SessionInfo]:
        return [*_sessions(opened, "WHERE id = ?", self._session)]

    def _from(self, page: Page, since: int) -> Iterator[MessageRow]:
        """The messages of a page and of all later ones."""
        while page:
            yield from (row for _, row in page)
            if len(page) < PAGE:
                return
            place, _ = page[-1]
            page = ask(self._path, lambda opened, at=place: self._page(opened, since, at))

    def _page(self, opened: sqlite3.Connection, since: int, place: Place = BEGINNING) -> Page:
        rows = opened.execute(MESSAGES, (self._session, since, *place, PAGE)).fetchall()
        return [
            ((created, id), MessageRow(text_value(id) or "", int_value(updated), bytes_value(data)))
            for id, created, updated, data in rows
        ]


def _sessions(opened: sqlite3.Connection, where: str, *values: str) -> Iterator[SessionInfo]:
    existing = {text_value(row[1]) for row in opened.execute("PRAGMA table_info(session)")}
    columns = ", ".join(name if name in existing else f"NULL AS {name}" for name in OPTIONAL)
    has_workspaces = "workspace_id" in existing and _has_branches(opened)
    branch = WORKSPACE_BRANCH if has_workspaces else "NULL"
    for row in opened.execute(f"SELECT id, {columns}, {branch} FROM session {where}", values):
        id, parent, directory, title, version, revert, created, updated, branch = row
        yield SessionInfo(
            id=text_value(id) or "",
            parent=text_value(parent),
            directory=text_value(directory),
            title=text_value(title),
            version=text_value(version),
            time=Times(created=float_value(created), updated=float_value(updated)),
            revert=_revert.decode_or_none(bytes_value(revert)),
            branch=parse_branch(text_value(branch)),
        )


def _has_branches(opened: sqlite3.Connection) -> bool:
    """Whether the database has workspaces with branches: not in every version."""
    return any(
        text_value(row[1]) == "branch" for row in opened.execute("PRAGMA table_info(workspace)")
    )
