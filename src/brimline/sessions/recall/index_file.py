"""The index of one transcript: its passages and their words, in a SQLite file with FTS5.

The file holds a mark of how far the transcript was read. Passages and mark are written in one
transaction, so that a killed process leaves the index as it was before. A file that is damaged, of
another version, or of a transcript that was replaced is removed and made again.
"""

import os
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from brimline._version import __version__
from brimline.agents import get_agent, source
from brimline.agents.content import read_content
from brimline.agents.transcripts.lines import JsonLines
from brimline.agents.transcripts.source import START, Cursor, Events, Transcript
from brimline.context.events import MAIN, Call, Cleared, Compacted
from brimline.errors import CommandFailed
from brimline.files.file_lock import locked_file
from brimline.files.private_folder import create_private_folder
from brimline.sessions.recall.passages import Passage, Role, read_passages
from brimline.sessions.recall.query import RecallQuery, separate_joined
from brimline.sessions.state_file import FileMark, file_mark, still_matches

VERSION = f"{__version__} 1"  # increase the number when the tables or what they hold change
LOCK_NAME = "lock"
LOCK_WAIT_S = 120.0  # another process may be reading a gigabyte
BUSY_WAIT_S = 5.0
BATCH_BYTES = 8 << 20  # of the transcript: what is lost if the process is killed
LINES_SUFFIX = ".jsonl"

# How much a word counts: in what the user wrote, in other text, in a call, in a result.
COLUMNS: dict[Role, str] = {
    "user": "user_text",
    "reply": "agent_text",
    "reasoning": "agent_text",
    "plan": "agent_text",
    "summary": "agent_text",
    "call": "call",
    "result": "result",
    "error": "result",
}
RANK = "bm25(4.0, 2.0, 2.0, 1.0)"

TABLES = f"""
CREATE TABLE mark (data BLOB NOT NULL);
CREATE TABLE record (number INTEGER PRIMARY KEY, digest BLOB NOT NULL);
CREATE TABLE passage (
    id INTEGER PRIMARY KEY, role TEXT NOT NULL, at REAL, line INTEGER NOT NULL,
    call INTEGER NOT NULL, tool TEXT NOT NULL, call_id TEXT NOT NULL, text TEXT NOT NULL
);
CREATE INDEX passage_call ON passage (call_id) WHERE call_id != '';
CREATE VIRTUAL TABLE words USING fts5(
    {", ".join(dict.fromkeys(COLUMNS.values()))},
    content='', tokenize='unicode61 remove_diacritics 0'
);
INSERT INTO words (words, rank) VALUES ('rank', '{RANK}');
"""

NO_FTS5 = "the SQLite of this Python has no full-text search (FTS5)"
NO_FTS5_HINT = "Run Brimline with another Python, such as one of python.org or of uv."

Advance = Callable[[int], None]  # called with the bytes that were read since the last call


class ReadMark(msgspec.Struct, frozen=True, array_like=True):
    """How far a transcript was read; `file` is None if it is read as a whole each time.

    `lines` and `calls` were counted up to there. Passages before number `boundary` stand before the
    thread's last compaction or clear; it is 0 if there was none.
    """

    version: str = VERSION
    file: FileMark | None = None
    read: tuple[int, float] | None = None  # the size and modification time of the transcript
    carry: bytes = b""
    lines: int = 0
    calls: int = 0
    last_call: str = ""
    boundary: int = 0


class StoredPassage(msgspec.Struct, frozen=True):
    """A passage with its place: `line` counts lines, or the records of a database or document.

    `call` is how many calls of the model the thread had made by then.
    """

    id: int
    passage: Passage
    line: int
    call: int


_mark = msgspec.msgpack.Decoder(ReadMark)


def index_name(transcript: Transcript) -> str:
    key = f"{os.path.abspath(transcript.path)}\0{transcript.session}\0{transcript.thread}"
    return f"{blake2b(os.fsencode(key), digest_size=16).hexdigest()}.db"


class PassageIndex:
    """The passages of one transcript, in an open database."""

    def __init__(self, database: sqlite3.Connection, transcript: Transcript) -> None:
        self._database, self._transcript = database, transcript
        self.mark = self._load_mark()

    def _load_mark(self) -> ReadMark:
        rows = self._database.execute("SELECT data FROM mark").fetchall()
        return _mark.decode(rows[0][0]) if rows else ReadMark()

    @property
    def is_current(self) -> bool:
        """Whether a file of lines has not changed since it was read."""
        transcript = self._transcript
        is_same = self.mark.read == (transcript.size, transcript.modified)
        return is_same and self.mark.file is not None and self.continues

    @property
    def continues(self) -> bool:
        """Whether the transcript still begins with what was read."""
        return self.mark.file is None or still_matches(self.mark.file, self._transcript)

    def update(self, advance: Advance) -> None:
        """Read what is new; raises UnreadableTranscript, OSError, sqlite3.Error."""
        transcript = self._transcript
        cursor = Cursor(self.mark.file.offset, self.mark.carry) if self.mark.file else START
        if transcript.path.endswith(LINES_SUFFIX):
            reader = source(transcript.agent).read(transcript, cursor)
            if isinstance(reader, JsonLines):
                self._add_lines(reader, cursor.offset, advance)
                return
        self._add_records(advance)

    def _add_lines(self, reader: JsonLines, start: int, advance: Advance) -> None:
        writer = _PassageWriter(self._database, self._transcript, self.mark)
        first_line, saved = self.mark.lines, start
        for data, events in reader.records(with_rest=False):
            writer.add(data, events, first_line + reader.lines_read)
            offset = reader.cursor.offset
            if offset - saved >= BATCH_BYTES:
                self._save(writer, reader, first_line)
                advance(offset - saved)
                saved = offset
        self._save(writer, reader, first_line, is_whole=True)
        advance(reader.cursor.offset - saved)

    def _save(
        self, writer: "_PassageWriter", reader: JsonLines, first_line: int, is_whole: bool = False
    ) -> None:
        transcript, cursor = self._transcript, reader.cursor
        self._commit(
            msgspec.structs.replace(
                writer.mark,
                file=file_mark(transcript.path, cursor.offset),
                read=(transcript.size, transcript.modified) if is_whole else None,
                carry=cursor.carry,
                lines=first_line + reader.lines_read,
            )
        )

    def _add_records(self, advance: Advance) -> None:
        """Read all records; those that are the same as before are only counted again."""
        known = [digest for (digest,) in self._database.execute(
            "SELECT digest FROM record ORDER BY number"
        )]  # fmt: skip
        writer = _PassageWriter(self._database, self._transcript, ReadMark())
        number = 0
        for record in source(self._transcript.agent).records(self._transcript):
            if record.is_earlier:
                continue
            number += 1
            digest = blake2b(record.data, digest_size=8).digest()
            if number <= len(known) and digest == known[number - 1]:
                writer.skip(record.data, record.events, number)
                continue
            if number <= len(known):
                self._forget(number)
                known = known[: number - 1]
            self._database.execute("INSERT INTO record VALUES (?, ?)", (number, digest))
            writer.add(record.data, record.events, number)
        self._forget(number + 1)
        transcript = self._transcript
        self._commit(
            msgspec.structs.replace(
                writer.mark, read=(transcript.size, transcript.modified), lines=number
            )
        )
        advance(transcript.size)

    def _forget(self, first: int) -> None:
        """Remove the records from a number on, with their passages."""
        for id, role, text in self._database.execute(
            "SELECT id, role, text FROM passage WHERE line >= ?", (first,)
        ).fetchall():
            self._database.execute(
                f"INSERT INTO words (words, rowid, {COLUMNS[role]}) VALUES ('delete', ?, ?)",
                (id, separate_joined(text)),
            )
        self._database.execute("DELETE FROM passage WHERE line >= ?", (first,))
        self._database.execute("DELETE FROM record WHERE number >= ?", (first,))

    def _commit(self, mark: ReadMark) -> None:
        self._database.execute("DELETE FROM mark")
        encoded = msgspec.msgpack.encode(mark)
        self._database.execute("INSERT INTO mark VALUES (?)", (encoded,))
        self._database.commit()
        self.mark = mark

    def find_candidates(
        self, query: RecallQuery, before_compaction: bool
    ) -> Iterator[tuple[float, StoredPassage]]:
        """Yield passages that may have all terms and their scores, the best and lowest first."""
        end = self.mark.boundary if before_compaction else 1 << 62
        if index_query := query.index_query:
            rows = self._database.execute(
                "SELECT words.rank, passage.* FROM words JOIN passage ON passage.id = words.rowid "
                "WHERE words MATCH ? AND words.rowid < ? ORDER BY words.rank",
                (index_query, end),
            )
        else:
            rows = self._database.execute(
                "SELECT 0.0, * FROM passage WHERE id < ? ORDER BY id DESC", (end,)
            )
        for score, *columns in rows:
            yield score, _stored_passage(columns)

    def find_call(self, call_id: str, role: Role) -> Passage | None:
        """Return the first passage of a tool's call, or of its result."""
        row = self._database.execute(
            "SELECT * FROM passage WHERE call_id = ? AND call_id != '' AND role = ? ORDER BY id",
            (call_id, role),
        ).fetchone()
        return _stored_passage(row).passage if row else None


def _stored_passage(row: Iterable[Any]) -> StoredPassage:
    id, role, at, line, call, tool, call_id, text = row
    return StoredPassage(id, Passage(role, text, at, tool, call_id), line, call)


class _PassageWriter:
    """Adds the passages of records to a database, and counts calls and compactions."""

    def __init__(
        self, database: sqlite3.Connection, transcript: Transcript, mark: ReadMark
    ) -> None:
        self._database, self._thread = database, transcript.thread
        self._content = get_agent(transcript.agent).content_reader(transcript.thread != MAIN)
        ((self._last_id,),) = database.execute("SELECT ifnull(max(id), 0) FROM passage")
        self.mark = mark

    def add(self, data: bytes, events: Events, line: int) -> None:
        self._count(events, self._last_id)
        if not data:
            return
        for piece in read_content([data], self._content):
            for passage in read_passages(piece):
                self._last_id += 1
                self._insert(passage, line)

    def skip(self, data: bytes, events: Events, line: int) -> None:
        """Count a record whose passages are stored; the content reader sees it too."""
        has_boundary = any(isinstance(event, Cleared | Compacted) for event in events)
        before = "SELECT ifnull(max(id), 0) FROM passage WHERE line < ?"
        ((last,),) = self._database.execute(before, (line,)) if has_boundary else ((0,),)
        self._count(events, last)
        for _ in read_content([data], self._content) if data else ():
            pass

    def _count(self, events: Events, last_id: int) -> None:
        for event in events:
            match event:
                case Call(thread=self._thread) if event.id != self.mark.last_call:
                    self.mark = msgspec.structs.replace(
                        self.mark, calls=self.mark.calls + 1, last_call=event.id
                    )
                case Compacted(thread=self._thread) | Cleared(thread=self._thread):
                    self.mark = msgspec.structs.replace(self.mark, boundary=last_id + 1)
                case _:
                    pass

    def _insert(self, passage: Passage, line: int) -> None:
        id, text, at = self._last_id, passage.text, passage.at
        row = (id, passage.role, at, line, self.mark.calls, passage.tool, passage.call_id, text)
        self._database.execute("INSERT INTO passage VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        self._database.execute(
            f"INSERT INTO words (rowid, {COLUMNS[passage.role]}) VALUES (?, ?)",
            (id, separate_joined(text)),
        )


@contextmanager
def open_index(
    folder: Path, transcript: Transcript, advance: Advance, wait_s: float = LOCK_WAIT_S
) -> Generator[tuple[PassageIndex, str | None]]:
    """Open a transcript's index with what is new in it, and yield it with what was wrong, if any.

    Without a usable folder the index is made in memory. If another process updates indexes for
    longer than `wait_s`, it is as it was before. Raises UnreadableTranscript, OSError if the
    transcript cannot be read, and CommandFailed without FTS5.
    """
    problem: str | None = None
    try:
        database = _open_updated(folder, transcript, advance, wait_s)
    except TimeoutError:
        database = _connect(folder / index_name(transcript))
        problem = "another process is indexing transcripts: what is new was not searched"
    except (OSError, sqlite3.Error) as error:
        problem = f"cannot write the index in {folder}: {_reason(error)}"
        database = None
    if database is None:
        database = sqlite3.connect(":memory:")
        _create_tables(database)
        PassageIndex(database, transcript).update(advance)
    with closing(database):
        yield PassageIndex(database, transcript), problem


def _reason(error: OSError | sqlite3.Error) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _open_updated(
    folder: Path, transcript: Transcript, advance: Advance, wait_s: float
) -> sqlite3.Connection | None:
    path = folder / index_name(transcript)
    database = _connect(path)
    if database is not None:
        with closing_on_error(database):
            if PassageIndex(database, transcript).is_current:
                return database
        database.close()
    create_private_folder(folder)
    with locked_file(folder / LOCK_NAME, wait_s):
        database = _connect(path)
        if database is not None and not PassageIndex(database, transcript).continues:
            database.close()
            database = None
        if database is None:
            database = _create(path)
        with closing_on_error(database):
            PassageIndex(database, transcript).update(advance)
        return database


@contextmanager
def closing_on_error(database: sqlite3.Connection) -> Generator[None]:
    try:
        yield
    except BaseException:
        database.close()
        raise


def _connect(path: Path) -> sqlite3.Connection | None:
    """Open an index; None if there is none that can be used."""
    if not path.is_file() or path.is_symlink():
        return None
    database = sqlite3.connect(path, timeout=BUSY_WAIT_S)
    try:
        database.execute("PRAGMA synchronous = OFF")  # what a crash of the machine breaks is remade
        database.execute("PRAGMA cache_size = -65536")
        ((data,),) = database.execute("SELECT data FROM mark")
        is_usable = _mark.decode(data).version == VERSION
    except (sqlite3.DatabaseError, msgspec.DecodeError, ValueError):
        is_usable = False
    if not is_usable:
        database.close()
        return None
    return database


def _create(path: Path) -> sqlite3.Connection:
    """Put an empty index in place, which no one else can read."""
    for suffix in ("", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    database = sqlite3.connect(path, timeout=BUSY_WAIT_S)
    with closing_on_error(database):
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA cache_size = -65536")
        _create_tables(database)
    return database


def _create_tables(database: sqlite3.Connection) -> None:
    try:
        database.executescript(TABLES)
    except sqlite3.OperationalError as error:
        if "fts5" not in str(error):
            raise
        raise CommandFailed("recall", NO_FTS5, NO_FTS5_HINT) from error
    database.execute("INSERT INTO mark VALUES (?)", (msgspec.msgpack.encode(ReadMark()),))
    database.commit()


def drop_orphans(folder: Path, transcripts: Iterable[Transcript]) -> None:
    """Remove the indexes of transcripts that no longer exist; `transcripts` are all there are."""
    kept = {index_name(transcript) for transcript in transcripts}
    with suppress(OSError):
        for path in folder.glob("*.db"):
            if path.name not in kept:
                path.unlink()
