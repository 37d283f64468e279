"""opencode."""

import re
from collections.abc import Iterator
from functools import partial
from io import BufferedReader, RawIOBase
from typing import BinaryIO, cast

from brimline.agents.opencode import paths
from brimline.agents.opencode.database import DatabaseHistory, sessions
from brimline.agents.opencode.export import parse_export, read_records
from brimline.agents.opencode.incremental import History, SessionReader
from brimline.agents.opencode.json_storage import FolderHistory
from brimline.agents.opencode.records import STREAM_KINDS, OpencodeHead
from brimline.agents.opencode.stream import OpencodeStreamParser
from brimline.agents.opencode.transcript import SessionParser
from brimline.agents.transcripts.document import DocumentReader, read_whole
from brimline.agents.transcripts.lines import open_transcript
from brimline.agents.transcripts.source import (
    HEAD_BYTES,
    START,
    Cursor,
    Form,
    Lookalike,
    Reader,
    ReadMode,
    Record,
    Transcript,
)
from brimline.context.events import MAIN
from brimline.errors import UnreadableTranscript
from brimline.files.foreign_json import PADDING, JsonDecoder

SQLITE = b"SQLite format 3\0"

OTHER_TABLES = Lookalike(
    "transcript", "it is a database without the tables `session` and `message`"
)

_table = re.compile(rb"(?i)\bCREATE TABLE (?:IF NOT EXISTS )?[`\"'\[]?(\w+)")
_head = JsonDecoder(OpencodeHead)
_export = re.compile(rb'\s*\{\s*"info"\s*:\s*\{[^{}]*"id"\s*:\s*"ses_')
_session = re.compile(rb'\s*\{[^{}]*"id"\s*:\s*"ses_[^"]*"\s*,')


class Opencode:
    """opencode: its database, its older storage, its exports."""

    agent = "opencode"
    folders = staticmethod(paths.folders)
    settings = staticmethod(paths.settings)
    transcripts = staticmethod(paths.transcripts)

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> Reader:
        path, session, thread = transcript.path, transcript.session, transcript.thread
        if history := _find_history(transcript):
            return SessionReader(history, cursor, session, thread)
        parse = partial(parse_export, SessionParser(b"", session, thread))
        return DocumentReader(path, open_transcript(path), parse, cursor)

    def records(self, transcript: Transcript, file: BinaryIO | None = None) -> Iterator[Record]:
        path, session, thread = transcript.path, transcript.session, transcript.thread
        if file is None and (history := _find_history(transcript)):
            records = SessionReader(history, START, session, thread).records()
        else:
            document = read_whole(path, _document_file(file) if file else open_transcript(path))
            records = read_records(SessionParser(b"", session, thread), document)
        for data, events in records:
            yield Record(data, events, thread)

    def parse(self, file: BinaryIO) -> Reader:
        """Return a reader of an export."""
        parse = partial(parse_export, SessionParser())
        return DocumentReader("the transcript", _document_file(file), parse)

    def stream(self) -> OpencodeStreamParser:
        return OpencodeStreamParser()

    def recognise(self, head: bytes) -> Form | Lookalike | None:
        """By opencode's session ids, or the tables of a database."""
        if head.startswith(SQLITE):
            return "transcript" if _may_have_own_tables(head) else OTHER_TABLES
        if _export.match(head) or _session.match(head):
            return "transcript"
        return "stream" if any(_is_line(line) for line in head.split(b"\n")[:8]) else None


def _document_file(file: BinaryIO) -> BinaryIO:
    """Return a file without a path, which must be an export; raises UnreadableTranscript."""
    peekable = BufferedReader(cast("RawIOBase", file))
    if peekable.peek(len(SQLITE)).startswith(SQLITE):
        peekable.close()
        raise UnreadableTranscript(
            "the transcript", "it is an opencode database", "Pass the path of the database."
        )
    return peekable


def _find_history(transcript: Transcript) -> History | None:
    """Return where the messages of a session are stored; None if the file is an export."""
    path = transcript.path
    with open_transcript(path) as file:
        head = file.read(HEAD_BYTES).lstrip(PADDING)
    if head.startswith(SQLITE) or (not head and path.endswith(".db")):
        own = transcript.session if transcript.thread == MAIN else transcript.thread
        return DatabaseHistory(path, own or _only_session(path))
    return FolderHistory(path) if _session.match(head) else None


def _may_have_own_tables(head: bytes) -> bool:
    """Whether a database can be opencode's; a new one has its tables in the log next to it only."""
    tables = {table.lower() for table in _table.findall(head)}
    return not tables or {b"session", b"message"} <= tables


def _is_line(line: bytes) -> bool:
    first = _head.decode_or_none(line) or OpencodeHead()
    return first.type in STREAM_KINDS and (first.session or "").startswith("ses_")


def _only_session(path: str) -> str:
    ids = [info.id for info in sessions(path)]
    if len(ids) == 1:
        return ids[0]
    hint = f"Name one of them: {', '.join(ids[:5])}." if ids else None
    raise UnreadableTranscript(path, f"it has {len(ids)} sessions", hint)


SOURCE = Opencode()
