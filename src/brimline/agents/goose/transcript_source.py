"""Goose: how its sessions and streams are recognised and read."""

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import BinaryIO

import msgspec

from brimline.agents.goose import paths
from brimline.agents.goose.database import (
    GooseMessage,
    GooseSession,
    LedgerRow,
    read_ledger,
    read_messages,
    read_sessions,
)
from brimline.agents.transcripts.database import SQLITE, only_session
from brimline.agents.transcripts.source import (
    START,
    Cursor,
    Form,
    Parser,
    Reader,
    ReadMode,
    Record,
    Tally,
    Transcript,
)
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Compacted,
    SessionSeen,
    Spent,
    Unmetered,
)
from brimline.errors import UnreadableTranscript
from brimline.files.foreign_json import JsonDecoder

UNNAMED = "CLI Session"  # its name until the model gave one
STREAM_KINDS = frozenset({"complete", "error", "message", "notification"})


class GooseUsage(msgspec.Struct, frozen=True, rename="camel"):
    """The prompt and the reply of the call that wrote a message."""

    input_tokens: int | None = None
    output_tokens: int | None = None


class GooseMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """Who gets a message; the first message of a reply has its usage."""

    user_visible: bool | None = None
    turn_context: bool = False
    usage: GooseUsage | None = None


class GooseStreamMessage(msgspec.Struct, frozen=True):
    """A message in a stream."""

    metadata: GooseMetadata = GooseMetadata()


class GooseLine(msgspec.Struct, frozen=True):
    """A line of a stream."""

    type: str = ""
    message: GooseStreamMessage = GooseStreamMessage()


_metadata = JsonDecoder(GooseMetadata)
_line = JsonDecoder(GooseLine)


def events_of(row: LedgerRow, thread: str, provider: str | None) -> Sequence[AnyEvent]:
    """Return the events of a call; that of a compaction was billed, and holds nothing."""
    usage, id = row.usage, str(row.id)
    if row.is_compaction:
        compacted = Compacted(at=row.at, thread=thread)
        if usage is None:
            return (compacted,)
        spent = Spent(at=row.at, id=id, usage=usage, model=row.model, thread=thread, cost=row.cost)
        return spent, compacted
    if usage is None:
        return (Unmetered(at=row.at),)
    return (
        Call(
            at=row.at,
            id=id,
            usage=usage,
            model=row.model,
            thread=thread,
            provider=provider,
            cost=row.cost,
            can_compact=False,  # it compacts before a prompt only, of which the row says nothing
        ),
    )


def own_session(transcript: Transcript) -> str:
    """The id of the session of a thread; raises UnreadableTranscript if it is unknown."""
    path, own = transcript.path, transcript.thread
    if own == MAIN:
        own = transcript.session or only_session(path, [one.id for one in read_sessions(path)])
    return own


class LedgerReader:
    """The events of a session's calls after those of the cursor; a Reader.

    The offset of the cursor is the id of the last row: ids grow, and rows never change.
    """

    def __init__(self, transcript: Transcript, cursor: Cursor = START) -> None:
        self._session = transcript.session
        self.thread = transcript.thread
        self.session_id = own_session(transcript)
        self.info, self.rows = read_ledger(transcript.path, self.session_id, cursor.offset)
        self.cursor = cursor
        self.tally = Tally()

    def __iter__(self) -> Iterator[AnyEvent]:
        seen = _seen(self.info, self._session)
        carry = (seen.title or "-").encode()
        if carry != self.cursor.carry:
            yield seen
        for row in self.rows:
            yield from self.read(row)
        last = self.rows[-1].id if self.rows else self.cursor.offset
        self.cursor = Cursor(last, carry)

    def read(self, row: LedgerRow) -> Sequence[AnyEvent]:
        parse = partial(events_of, row, self.thread, self.info.provider)
        return tuple(self.tally.read(parse, f"row {row.id} of usage_ledger"))

    def records(self, messages: Iterator[GooseMessage]) -> Iterator[Record]:
        """Yield each message with the events of its call, or of the compaction that it sums up."""
        yield Record(b"", (_seen(self.info, self._session),), self.thread)
        rows = deque(self.rows)
        for message in messages:
            metadata = _metadata.decode_or_none(message.metadata)
            if metadata is None:
                continue
            own = _take_until_call(rows, metadata.usage) if metadata.usage else []
            is_summary = self._is_summary(message, metadata, rows)
            if is_summary:
                own = [rows.popleft()]
            events = [event for row in own for event in self.read(row)]
            yield Record(_encode(message, is_summary), events, self.thread)
        for row in rows:
            yield Record(b"", self.read(row), self.thread)

    def _is_summary(
        self, message: GooseMessage, metadata: GooseMetadata, rows: deque[LedgerRow]
    ) -> bool:
        """Whether it is the summary of the next row; the copy of a prompt has the session's id."""
        is_hidden = metadata.user_visible is False and not metadata.turn_context
        is_copy = message.id.startswith(f"msg_{self.session_id}_")
        is_next = bool(rows) and rows[0].is_compaction
        return message.role == "user" and is_hidden and not is_copy and is_next


def _seen(info: GooseSession, session: str | None) -> SessionSeen:
    return SessionSeen(
        session=session or info.id,
        agent="goose",
        project=info.folder,
        title=None if info.name == UNNAMED or info.parent else info.name or None,
        records_compactions=True,
    )


def _take_until_call(rows: deque[LedgerRow], usage: GooseUsage) -> list[LedgerRow]:
    """Take the rows up to the call with this usage; none if there is no such call."""
    sought = (usage.input_tokens, usage.output_tokens, False)
    for place, row in enumerate(rows):
        if (row.input, row.output, row.is_compaction) == sought:
            return [rows.popleft() for _ in range(place + 1)]
    return []


def _encode(message: GooseMessage, is_summary: bool) -> bytes:
    """Return a message as one JSON object."""
    return b'{"role":%s,"created":%d,"summary":%s,"metadata":%s,"content":%s}' % (
        msgspec.json.encode(message.role),
        message.at,
        b"true" if is_summary else b"false",
        message.metadata,
        message.content,
    )


class GooseStreamParser(Parser):
    """One run of `goose run --output-format stream-json`: messages without usage.

    It names no session. Its totals are those of the whole session, not of the run.
    """

    def __init__(self) -> None:
        self._is_first = True

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        if _line.decode(record).type not in STREAM_KINDS:
            return None
        events = (SessionSeen(agent="goose"),) if self._is_first else ()
        self._is_first = False
        return events


class Goose:
    """Goose: all its sessions in one database."""

    agent = "goose"
    folders = staticmethod(paths.folders)
    settings = staticmethod(paths.settings)
    transcripts = staticmethod(paths.transcripts)

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> Reader:
        return LedgerReader(transcript, cursor)

    def records(self, transcript: Transcript, file: BinaryIO | None = None) -> Iterator[Record]:
        if file is not None:
            raise _needs_path(file)
        reader = LedgerReader(transcript)
        return reader.records(read_messages(transcript.path, reader.session_id))

    def parse(self, file: BinaryIO) -> Reader:
        raise _needs_path(file)

    def stream(self) -> GooseStreamParser:
        return GooseStreamParser()

    def recognise(self, head: bytes) -> Form | None:
        """By the ledger's table, and by who may see a stream's message."""
        if head.startswith(SQLITE):
            return "transcript" if b"CREATE TABLE usage_ledger" in head else None
        return "stream" if any(map(_is_message, head.split(b"\n")[:8])) else None


def _is_message(line: bytes) -> bool:
    """Whether a line is a stream's message; the lines of a banner may stand before it."""
    first = _line.decode_or_none(line)
    if first is None or first.type != "message":
        return False
    return first.message.metadata.user_visible is not None


def _needs_path(file: BinaryIO) -> UnreadableTranscript:
    file.close()
    reason = "it is a database of Goose, or none of its transcripts"
    return UnreadableTranscript("the transcript", reason, "Pass the path of the database.")


SOURCE = Goose()


def read_message_records(path: str, session: str) -> Iterator[bytes]:
    """Yield a session's messages as the content reader takes them; raises UnreadableTranscript."""
    transcript = Transcript(SOURCE.agent, path, 0.0, 0, session or None)
    return (record.data for record in SOURCE.records(transcript) if record.data)
