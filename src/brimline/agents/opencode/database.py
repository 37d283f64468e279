"""opencode's SQLite database: its sessions, and the messages of each.

Queries neither block its writer nor create files next to it. A plain read-only connection to a
database in WAL mode creates the files `-wal` and `-shm` if there are none, and leaves them. So the
mode depends on the files next to the database:

| next to it | mode |
|---|---|
| a log and its index | `readonly_shm=1`, with SQLite's locks |
| a log alone (a crash, a copied folder) | no locks, index on the heap |
| a rollback journal | SQLite's locks |
| none of them | `immutable=1` |

Without locks, the files are compared after each query: if they changed, the query is repeated.
"""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote

from brimline.agents.opencode.conversation import MessageRow, StoredMessage, StoredPart
from brimline.agents.opencode.records import OpencodePart, Revert, SessionInfo, Times
from brimline.agents.transcripts.source import parse_branch
from brimline.errors import UnreadableTranscript
from brimline.files.foreign_json import JsonDecoder

BUSY_TIMEOUT_S = 0.25

ATTEMPTS = 5

LOCKED = "mode=ro"
LOG_AND_INDEX = "mode=ro&readonly_shm=1"
LOG_ALONE = "mode=ro&vfs=unix-none"
SETTLED = "mode=ro&immutable=1"

MIGRATE = "Start opencode once to migrate its database."

REASONS: tuple[tuple[str, str, str | None], ...] = (
    ("SQLITE_BUSY", f"locked by its writer for more than {BUSY_TIMEOUT_S} s", "Try again later."),
    ("SQLITE_LOCKED", f"locked by its writer for more than {BUSY_TIMEOUT_S} s", "Try again later."),
    ("SQLITE_NOTADB", "not a database, or damaged", None),
    ("SQLITE_CORRUPT", "damaged", None),
    ("SQLITE_ERROR", "unknown tables or columns", MIGRATE),
)

T = TypeVar("T")


def ask(path: str, query: Callable[[sqlite3.Connection], T]) -> T:
    """Return the result of a query; raises UnreadableTranscript, and never waits for long."""
    failure: sqlite3.Error | None = None
    for _ in range(ATTEMPTS):
        before, mode = _file_state(path), _mode(path)
        try:
            result = _query(path, mode, query)
        except sqlite3.Error as error:
            failure = error
            if not _is_transient(error) and before == _file_state(path):
                break
            continue
        except UnicodeDecodeError as error:  # Python decodes SQLite's error, which quotes the file
            raise UnreadableTranscript(path, "damaged") from error
        if mode in (LOCKED, LOG_AND_INDEX) or before == _file_state(path):
            return result
    raise _unreadable(path, failure) from failure


def _query(path: str, mode: str, query: Callable[[sqlite3.Connection], T]) -> T:
    uri = f"file:{quote(os.fsencode(os.path.abspath(path)))}?{mode}"
    with closing(
        sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    ) as opened:
        opened.text_factory = bytes
        if mode == LOG_ALONE:
            opened.execute("PRAGMA locking_mode = exclusive")
        return query(opened)


def _mode(path: str) -> str:
    if _size_and_time(f"{path}-journal")[0]:
        return LOCKED
    if not _size_and_time(f"{path}-wal")[0]:
        return SETTLED
    return LOG_AND_INDEX if _size_and_time(f"{path}-shm")[0] else LOG_ALONE


def _file_state(path: str) -> tuple[object, ...]:
    """A value that changes with each write; raises if the database is not a file."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise UnreadableTranscript(path, error.strerror or str(error)) from error
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableTranscript(path, "not a file")
    sidecars = (_size_and_time(f"{path}-wal"), _size_and_time(f"{path}-journal"))
    return status.st_ino, status.st_size, status.st_mtime_ns, sidecars


def _size_and_time(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _is_transient(error: sqlite3.Error) -> bool:
    """Whether the writer was just renewing its index."""
    return _error_name(error).startswith(("SQLITE_READONLY", "SQLITE_PROTOCOL"))


def _error_name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")  # errors of the Python module have none


def _unreadable(path: str, failure: sqlite3.Error | None) -> UnreadableTranscript:
    if failure is None:
        return UnreadableTranscript(path, "it changes faster than it can be read", "Try again.")
    for prefix, reason, hint in REASONS:
        if _error_name(failure).startswith(prefix):
            return UnreadableTranscript(path, f"{reason} ({failure})", hint)
    return UnreadableTranscript(path, str(failure))


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
            stored = StoredPart(_text(id), part) if isinstance(part, bytes) else None
            yield PartRow(_text(message) or "", _bytes(data), stored)
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
        return [part for (data,) in rows if (part := _part.decode_or_none(_bytes(data)))]

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
            ((created, id), MessageRow(_text(id) or "", _number(updated), _bytes(data)))
            for id, created, updated, data in rows
        ]


def _sessions(opened: sqlite3.Connection, where: str, *values: str) -> Iterator[SessionInfo]:
    existing = {_text(row[1]) for row in opened.execute("PRAGMA table_info(session)")}
    columns = ", ".join(name if name in existing else f"NULL AS {name}" for name in OPTIONAL)
    has_workspaces = "workspace_id" in existing and _has_branches(opened)
    branch = WORKSPACE_BRANCH if has_workspaces else "NULL"
    for row in opened.execute(f"SELECT id, {columns}, {branch} FROM session {where}", values):
        id, parent, directory, title, version, revert, created, updated, branch = row
        yield SessionInfo(
            id=_text(id) or "",
            parent=_text(parent),
            directory=_text(directory),
            title=_text(title),
            version=_text(version),
            time=Times(created=_float(created), updated=_float(updated)),
            revert=_revert.decode_or_none(_bytes(revert)),
            branch=parse_branch(_text(branch)),
        )


def _has_branches(opened: sqlite3.Connection) -> bool:
    """Whether the database has workspaces with branches: not in every version."""
    return any(_text(row[1]) == "branch" for row in opened.execute("PRAGMA table_info(workspace)"))


def _text(value: object) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _number(value: object) -> int:
    """A time in a column, which in SQLite may hold anything; what is no number sorts first."""
    return value if isinstance(value, int) else 0
