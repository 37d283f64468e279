"""Cline CLI's sessions, a JSON document for each thread: how they are recognised and read."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from brimline.agents.cline import paths
from brimline.agents.transcripts.client_settings import read_settings
from brimline.agents.transcripts.document import MAX_DOCUMENT_BYTES, DocumentReader, read_whole
from brimline.agents.transcripts.lines import open_transcript
from brimline.agents.transcripts.source import (
    MALFORMED,
    START,
    Cursor,
    Events,
    Form,
    Parser,
    Places,
    ReadMode,
    Record,
    Tally,
    Transcript,
    parse_time,
)
from brimline.context.events import MAIN, AnyEvent, Call, Compacted, SessionSeen, Unmetered
from brimline.context.usage import from_subset
from brimline.context.window import ClientSettings
from brimline.files.foreign_json import JsonDecoder
from brimline.files.regular_file import read_regular_file


class ClineMetrics(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The usage of one call; `input_tokens` includes those of the cache."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


class ClineModel(msgspec.Struct, frozen=True, gc=False):
    id: str | None = None


class ClineMetadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What the client notes of a message; one that is `display_only` is not sent."""

    kind: str | None = None
    display_only: bool = False


class ClineMessage(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One message; a reply has the usage of its call."""

    role: str
    id: str | None = None
    ts: float | None = None
    model_info: ClineModel = ClineModel()
    metrics: ClineMetrics | None = None
    metadata: ClineMetadata = ClineMetadata()


class ClineOrigin(msgspec.Struct, frozen=True):
    version: str | None = None


class ClineThread(msgspec.Struct, frozen=True):
    """The document of a thread; that of a subagent has the id `SESSION__THREAD`."""

    session_id: str = msgspec.field(name="sessionId")
    origin: ClineOrigin = ClineOrigin()
    messages: list[msgspec.Raw] = []


class ClineCompaction(msgspec.Struct, frozen=True):
    """The last compaction: how many messages there were, and when."""

    source_message_count: int
    updated_at: str


class ClineTitle(msgspec.Struct, frozen=True):
    title: str | None = None


class ClineManifest(msgspec.Struct, frozen=True):
    """The session's own file, next to those of its threads."""

    cwd: str | None = None
    metadata: ClineTitle = ClineTitle()


class ClineStreamLine(msgspec.Struct, frozen=True, rename="camel"):
    """One line of `--json`."""

    ts: str | None = None
    type: str | None = None
    hook_event_name: str | None = None


_thread = JsonDecoder(ClineThread)
_message = JsonDecoder(ClineMessage)
_compaction = JsonDecoder(ClineCompaction)
_line = JsonDecoder(ClineStreamLine)

_first_values = re.compile(rb"\{[^{}\[\]]*")  # of the document, up to a nested object
DOCUMENT_KEYS = (b'"updated_at"', b'"sessionId"', b'"origin"')
STREAM_KINDS = frozenset({"agent_event", "error", "hook_event", "run_result"})


class ClineStreamParser(Parser):
    """One run of `cline --json`, which names neither the session nor whose usage it reports."""

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _line.decode(record)
        if line.hook_event_name == "agent_start":
            return (SessionSeen(at=parse_time(line.ts), agent="cline"),)
        return () if line.type in STREAM_KINDS else None


class Cline:
    """Cline CLI 3: documents that the client writes again as a whole."""

    agent = "cline"
    folders = staticmethod(paths.folders)
    transcripts = staticmethod(paths.transcripts)

    def settings(self, places: Places, project: str | None = None) -> ClientSettings:
        return ClientSettings()

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> DocumentReader:
        path = transcript.path
        return DocumentReader(path, open_transcript(path), partial(_events, path), cursor)

    def records(self, transcript: Transcript, file: BinaryIO | None = None) -> Iterator[Record]:
        path = transcript.path
        data = read_whole(path, file or open_transcript(path))
        with suppress(*MALFORMED):
            yield from _split_document("" if file else path, data, Tally())

    def parse(self, file: BinaryIO) -> DocumentReader:
        return DocumentReader("the transcript", file, partial(_events, ""))

    def stream(self) -> ClineStreamParser:
        return ClineStreamParser()

    def recognise(self, head: bytes) -> Form | None:
        """A document begins with its time, its session and where that is from."""
        values = _first_values.match(head)
        if values is not None and all(key in values[0] for key in DOCUMENT_KEYS):
            return "transcript"
        first = _line.decode_or_none(head.partition(b"\n")[0]) or ClineStreamLine()
        return "stream" if first.type == "hook_event" and first.ts is not None else None


def _events(path: str, data: bytes, tally: Tally) -> Events:
    records = _split_document(path, data, tally)
    return [event for record in records for event in record.events]


def _split_document(path: str, data: bytes, tally: Tally) -> Iterator[Record]:
    """Yield the messages of a thread; where its last compaction is, the file that has it."""
    document = _thread.decode(data)
    session, _, name = document.session_id.partition("__")
    thread = name.removeprefix("teamtask__") or MAIN
    manifest = _read_manifest(path) or ClineManifest()
    seen = SessionSeen(
        session=session,
        agent="cline",
        project=manifest.cwd,
        version=document.origin.version,
        title=manifest.metadata.title if thread == MAIN else None,
    )
    yield Record(b"", (seen,), thread)
    compacted = _read_compaction(path)
    compaction = _compaction.decode_or_none(compacted) if compacted else None
    sent = 0
    for number, raw in enumerate(document.messages, 1):
        message = _message.decode_or_none(raw)
        events = tally.read(partial(_read_message, raw, thread), f"message {number}")
        yield Record(bytes(raw), events, thread)
        sent += message is not None and not message.metadata.display_only
        if compaction is not None and sent == compaction.source_message_count:
            at = parse_time(compaction.updated_at)
            yield Record(compacted, (Compacted(at=at, thread=thread, is_late=True),), thread)
            compaction = None


def _read_message(raw: msgspec.Raw, thread: str) -> Sequence[AnyEvent] | None:
    """Return the call of a reply; None if the role is unknown."""
    message = _message.decode(raw)
    at, metrics, id = parse_time(message.ts), message.metrics, message.id
    if message.role != "assistant":
        return () if message.role == "user" else None
    if metrics is None or id is None:
        return (Unmetered(at=at),)
    if not (metrics.input_tokens or metrics.output_tokens):
        return ()  # the provider reported no usage
    usage = from_subset(
        metrics.input_tokens,
        metrics.cache_read_tokens,
        metrics.cache_write_tokens,
        metrics.output_tokens,
    )
    return (Call(at=at, id=id, usage=usage, model=message.model_info.id, thread=thread),)


def _read_manifest(path: str) -> ClineManifest | None:
    folder = Path(path).parent
    return read_settings(folder / f"{folder.name}.json", ClineManifest) if path else None


def _read_compaction(path: str) -> bytes:
    """Return the file of a thread's last compaction; empty if there is none."""
    beside = f"{path.removesuffix(paths.MESSAGES)}{paths.COMPACTION}"
    try:
        return read_regular_file(beside, MAX_DOCUMENT_BYTES) if path else b""
    except OSError:
        return b""


SOURCE = Cline()
