"""Gemini CLI: how its files and streams are recognised and read, and the events of a stream."""

import re
from collections.abc import Iterator, Sequence
from io import BufferedReader, RawIOBase
from typing import BinaryIO, cast

import msgspec

from brimline.agents.gemini import paths
from brimline.agents.gemini.records import (
    STREAM_KINDS,
    GeminiHead,
    GeminiStreamLine,
    ModelStats,
    Stats,
)
from brimline.agents.gemini.transcript import ChatParser
from brimline.agents.transcripts.document import DocumentReader, read_whole
from brimline.agents.transcripts.lines import JsonLines, open_transcript
from brimline.agents.transcripts.source import (
    MALFORMED,
    START,
    Cursor,
    Events,
    Form,
    Parser,
    Reader,
    ReadMode,
    Record,
    Transcript,
    parse_time,
)
from brimline.context.events import AnyEvent, Call, SessionSeen, Spent
from brimline.context.usage import Usage, from_subset
from brimline.errors import InvalidUsage
from brimline.files.foreign_json import PADDING, JsonDecoder

_line = JsonDecoder(GeminiStreamLine)


class GeminiStreamParser(Parser):
    """One run of `gemini --output-format stream-json`, which has no call's usage, only the sum."""

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _line.decode(record)
        at = parse_time(line.timestamp)
        if line.type == "init":
            return (SessionSeen(at=at, session=line.session_id, agent="gemini"),)
        if line.type == "result" and line.stats is not None:
            return _spent(line.stats, at)
        return () if line.type in STREAM_KINDS else None


def _spent(stats: Stats, at: float | None) -> Sequence[AnyEvent]:
    if stats.models is None:
        return (Spent(at=at, usage=_usage(stats)),)
    return [Spent(at=at, usage=_usage(model), model=name) for name, model in stats.models.items()]


def _usage(stats: ModelStats) -> Usage:
    """All but the prompt is output: the stream's `output_tokens` does not include the thoughts."""
    if stats.total_tokens < stats.input_tokens:
        raise InvalidUsage("total_tokens", stats.total_tokens, f"{stats.input_tokens} or more")
    return from_subset(stats.input_tokens, stats.cached, 0, stats.total_tokens - stats.input_tokens)


class _OldChat(msgspec.Struct, frozen=True):
    messages: list[msgspec.Raw] = []


class _ChatMessageId(msgspec.Struct, frozen=True):
    id: str


_head = JsonDecoder(GeminiHead)
_old_chat = JsonDecoder(_OldChat)
_message_id = JsonDecoder(_ChatMessageId)
_first_values = re.compile(rb"\{[^{}\[\]]*")  # of the first object, up to a nested one
CHAT_KEYS = (b'"sessionId"', b'"projectHash"')


class Gemini:
    """Gemini CLI: chats of lines, and the older chats that are one document."""

    agent = "gemini"
    folders = staticmethod(paths.folders)
    settings = staticmethod(paths.settings)
    transcripts = staticmethod(paths.transcripts)

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> Reader:
        path, file = transcript.path, _buffered(open_transcript(transcript.path))
        if path.endswith(".json") or _is_document(file):
            return _document_reader(path, file, _parser(transcript), cursor)
        file.seek(cursor.offset)
        return JsonLines(file, _parser(transcript, cursor.carry), cursor)

    def records(self, transcript: Transcript, file: BinaryIO | None = None) -> Iterator[Record]:
        path, parser = transcript.path, _parser(transcript)
        buffered = _buffered(file or open_transcript(path))
        if path.endswith(".json") or _is_document(buffered):
            records = _split_document(parser, read_whole(path, buffered))
        else:
            records = JsonLines(buffered, parser).records()
        for data, events in records:
            yield Record(data, events, parser.thread)

    def parse(self, file: BinaryIO) -> Reader:
        peekable = _buffered(file)
        if _is_document(peekable):
            return _document_reader("the transcript", peekable, ChatParser())
        return JsonLines(peekable, ChatParser())

    def stream(self) -> GeminiStreamParser:
        return GeminiStreamParser()

    def recognise(self, head: bytes) -> Form | None:
        """A chat begins with its session and its project's hash, a stream with its `init`."""
        lines = head.split(b"\n")[:8]
        if _is_header(head) or any(map(_is_header, lines)):
            return "transcript"
        return "stream" if any(map(_is_init, lines)) else None


def _buffered(file: BinaryIO) -> BufferedReader:
    return BufferedReader(cast("RawIOBase", file))


def _parser(transcript: Transcript, carry: bytes = b"") -> ChatParser:
    session = transcript.session or paths.whose(transcript.path)[0]
    return ChatParser(carry, session, transcript.thread, transcript.project)


def _split_document(parser: ChatParser, data: bytes) -> Iterator[tuple[bytes, Events]]:
    """Yield the messages of an older chat, each with its call; nothing if it is malformed."""
    try:
        events = parser.feed(data) or ()
        messages = _old_chat.decode(data).messages
    except MALFORMED:
        return
    calls = {event.id: event for event in events if isinstance(event, Call)}
    yield b"{}", tuple(event for event in events if not isinstance(event, Call))
    for message in messages:
        identified = _message_id.decode_or_none(message)
        call = calls.pop(identified.id, None) if identified else None
        yield bytes(message), () if call is None else (call,)


def _document_reader(
    path: str, file: BinaryIO, parser: ChatParser, cursor: Cursor = START
) -> DocumentReader:
    """Return a reader of an older chat: one document, which the client writes again as a whole."""
    return DocumentReader(path, file, lambda data, _: parser.feed(data), cursor)


def _is_document(file: BufferedReader) -> bool:
    """Whether the first line only opens an object, as in pretty-printed JSON."""
    return file.peek(64)[:64].lstrip(PADDING)[:2] in (b"{\n", b"{\r")


def _is_header(text: bytes) -> bool:
    """Whether a chat's header, or an older chat, begins like this."""
    values = _first_values.match(text)
    return values is not None and all(key in values[0] for key in CHAT_KEYS)


def _is_init(line: bytes) -> bool:
    first = _head.decode_or_none(line) or GeminiHead()
    return first.type == "init" and first.session_id is not None and first.model is not None


SOURCE = Gemini()
