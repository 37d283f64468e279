"""opencode and its forks: how files and streams are recognised and read; a stream's events."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from io import BufferedReader, RawIOBase
from typing import BinaryIO, cast

from brimline.agents.opencode.conversation import (
    MessageHistory,
    SessionReader,
    parse_export,
    read_exported_records,
)
from brimline.agents.opencode.database import DatabaseHistory, sessions
from brimline.agents.opencode.json_storage import FolderHistory
from brimline.agents.opencode.paths import PATHS, OpencodePaths
from brimline.agents.opencode.records import (
    STREAM_KINDS,
    OpencodeHead,
    OpencodeStreamLine,
    StreamPart,
)
from brimline.agents.opencode.transcript import OpencodeParser, usage_of
from brimline.agents.transcripts.database import SQLITE, only_session
from brimline.agents.transcripts.document import DocumentReader, read_whole
from brimline.agents.transcripts.lines import open_transcript
from brimline.agents.transcripts.source import (
    HEAD_BYTES,
    START,
    Cursor,
    Form,
    Lookalike,
    Parser,
    Reader,
    ReadMode,
    Record,
    Transcript,
    parse_time,
)
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Compacted,
    Ended,
    SessionSeen,
    compaction_thread,
)
from brimline.errors import UnreadableTranscript
from brimline.files.foreign_json import PADDING, JsonDecoder

_line = JsonDecoder(OpencodeStreamLine)
_part = JsonDecoder(StreamPart)


class OpencodeStreamParser(Parser):
    """One run of `opencode run --format json`: each finished step is a call of the main thread.

    Nothing marks the call that writes a compaction's summary; only the text after it has a mark.
    """

    def __init__(self, agent: str = "opencode") -> None:
        self._agent = agent
        self._session: str | None = None
        self._message: str | None = None  # of the last call
        self._call: str | None = None  # the last one

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _line.decode(record)
        if line.type not in STREAM_KINDS:
            return None
        events: Sequence[AnyEvent] = ()
        if line.type == "step_finish":
            events = self._finish_step(_part.decode(line.part), parse_time(line.timestamp))
        elif line.type == "text":
            events = self._text(_part.decode(line.part), parse_time(line.timestamp))
        if line.session is None or line.session == self._session:
            return events
        self._session = line.session
        seen = SessionSeen(session=line.session, agent=self._agent, records_compactions=True)
        return (seen, *events)

    def _text(self, part: StreamPart, at: float | None) -> Sequence[AnyEvent]:
        if part.metadata is None or not part.metadata.compaction_continue:
            return ()
        compacted = Compacted(at=at, trigger="auto", summary_call=self._call)
        ended = Ended(at=at, thread=compaction_thread())
        return (compacted,) if self._call is None else (compacted, ended)

    def _finish_step(self, part: StreamPart, at: float | None) -> Sequence[AnyEvent]:
        usage = usage_of(part.tokens)
        id = part.id if part.message == self._message else part.message
        if usage is None or id is None:
            return ()
        self._message, self._call = part.message, id
        return (Call(at=at, id=id, usage=usage, cost=part.cost or None),)


OTHER_TABLES = Lookalike(
    "transcript", "it is a database without the tables `session` and `message`"
)

# What Kilo CLI 7.7.9 alone writes. Each is looked for in its own place: the content of a session,
# which may have any text, follows it in the same file.
_fork_table = re.compile(rb"table(kilo_\w{1,60})\1.{1,8}CREATE TABLE", re.DOTALL)  # in the schema
_fork_part = re.compile(rb'\{\s*"id"\s*:\s*"prt_\w+"\s*,\s*"sessionID"')  # of a stream's line
_fork_version = re.compile(rb'"version"\s*:\s*"7\.')  # of a session
_messages_start = re.compile(rb'"messages"\s*:\s*\[')  # after the session, in an export

_table = re.compile(rb"(?i)\bCREATE TABLE (?:IF NOT EXISTS )?[`\"'\[]?(\w+)")
_head = JsonDecoder(OpencodeHead)
_export_start = re.compile(rb'\s*\{\s*"info"\s*:\s*\{[^{}]*"id"\s*:\s*"ses_')
_session_start = re.compile(rb'\s*\{[^{}]*"id"\s*:\s*"ses_[^"]*"\s*,')


class Opencode:
    """opencode, or a fork of it: its database, its older storage, its exports."""

    def __init__(self, paths: OpencodePaths) -> None:
        self.agent = paths.name
        self.folders = paths.folders
        self.settings = paths.settings
        self.transcripts = paths.transcripts

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> Reader:
        path, session, thread = transcript.path, transcript.session, transcript.thread
        if history := _find_history(transcript):
            return SessionReader(history, cursor, session, thread, self.agent)
        parse = partial(parse_export, OpencodeParser(b"", session, thread, self.agent))
        return DocumentReader(path, open_transcript(path), parse, cursor)

    def records(self, transcript: Transcript, file: BinaryIO | None = None) -> Iterator[Record]:
        path, session, thread = transcript.path, transcript.session, transcript.thread
        if file is None and (history := _find_history(transcript)):
            records = SessionReader(history, START, session, thread, self.agent).records()
        else:
            document = read_whole(path, _document_file(file) if file else open_transcript(path))
            parser = OpencodeParser(b"", session, thread, self.agent)
            records = read_exported_records(parser, document)
        for data, events in records:
            yield Record(data, events, thread)

    def parse(self, file: BinaryIO) -> Reader:
        """Return a reader of an export."""
        parse = partial(parse_export, OpencodeParser(agent=self.agent))
        return DocumentReader("the transcript", _document_file(file), parse)

    def stream(self) -> OpencodeStreamParser:
        return OpencodeStreamParser(self.agent)

    def recognise(self, head: bytes) -> Form | Lookalike | None:
        """By opencode's session ids, or the tables of a database; those of a fork by its marks."""
        is_fork = self.agent != PATHS.name
        if head.startswith(SQLITE):
            if bool(_fork_table.search(head)) != is_fork:
                return None
            return "transcript" if is_fork or _may_have_own_tables(head) else OTHER_TABLES
        if _export_start.match(head) or _session_start.match(head):
            session = _messages_start.split(head, 1)[0]
            return "transcript" if bool(_fork_version.search(session)) == is_fork else None
        lines = [_head.decode_or_none(line) for line in head.split(b"\n")[:8]]
        parts = [line.part for line in lines if line and _is_of_stream(line)]
        has_fork_part = any(map(_fork_part.match, parts))
        return "stream" if parts and has_fork_part == is_fork else None


def _document_file(file: BinaryIO) -> BinaryIO:
    """Return a file without a path, which must be an export; raises UnreadableTranscript."""
    peekable = BufferedReader(cast("RawIOBase", file))
    if peekable.peek(len(SQLITE)).startswith(SQLITE):
        peekable.close()
        raise UnreadableTranscript(
            "the transcript", "it is an opencode database", "Pass the path of the database."
        )
    return peekable


def _find_history(transcript: Transcript) -> MessageHistory | None:
    """Return where the messages of a session are stored; None if the file is an export."""
    path = transcript.path
    with open_transcript(path) as file:
        head = file.read(HEAD_BYTES).lstrip(PADDING)
    if head.startswith(SQLITE) or (not head and path.endswith(".db")):
        own = transcript.session if transcript.thread == MAIN else transcript.thread
        own = own or only_session(path, [info.id for info in sessions(path)])
        return DatabaseHistory(path, own)
    return FolderHistory(path) if _session_start.match(head) else None


def _may_have_own_tables(head: bytes) -> bool:
    """Whether a database can be opencode's; a new one has its tables in the log next to it only."""
    tables = {table.lower() for table in _table.findall(head)}
    return not tables or {b"session", b"message"} <= tables


def _is_of_stream(line: OpencodeHead) -> bool:
    return line.type in STREAM_KINDS and (line.session or "").startswith("ses_")


SOURCE = Opencode(PATHS)
