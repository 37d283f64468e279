"""Codex: how its files and streams are recognised and read, and the events of a stream."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

import msgspec

from brimline.agents.codex import paths
from brimline.agents.codex.records import (
    QUIET_LINES,
    CodexHead,
    CodexLine,
    CodexStreamLine,
    CodexTokens,
)
from brimline.agents.codex.transcript import RolloutParser
from brimline.agents.transcripts.line_source import LineSource
from brimline.agents.transcripts.lines import JsonLines, open_transcript
from brimline.agents.transcripts.source import Form, Parser, Record, Transcript
from brimline.context.events import AnyEvent, SessionSeen, Spent
from brimline.context.usage import ZERO, Usage
from brimline.errors import InvalidUsage, UnreadableTranscript
from brimline.files.foreign_json import JsonDecoder

_printed = JsonDecoder(CodexStreamLine)
_tokens = JsonDecoder(CodexTokens)


class CodexStreamParser(Parser):
    """Turns the lines of `codex exec --json`, of one run or of several, into events.

    A turn's usage is the total of its thread: all calls since the thread began, compactions too.
    The stream does not say how many they were, so it is reported as spent, not as occupancy.
    """

    def __init__(self) -> None:
        self._thread: str | None = None
        self._total = ZERO

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _printed.decode(record)
        if line.type == "turn.completed":
            return self._end_turn(_tokens.decode(line.usage).usage())
        if line.type == "thread.started":
            if line.thread_id != self._thread:
                self._thread, self._total = line.thread_id, ZERO
            return (SessionSeen(session=line.thread_id, agent="codex", records_compactions=False),)
        return () if line.type in QUIET_LINES else None

    def _end_turn(self, total: Usage) -> Sequence[AnyEvent]:
        try:
            spent = total - self._total
        except InvalidUsage:  # the total fell: it began again
            spent = total
        self._total = total
        return (Spent(usage=spent),) if spent.held else ()


_ROLLOUT = frozenset({"session_meta", "turn_context", "event_msg", "response_item", "compacted"})

_CUT_HEADER = re.compile(rb'"type"\s*:\s*"session_meta"\s*,\s*"payload"\s*:\s*\{')
MAX_FORKS = 16  # of forks of forks, this many files are read


_head = JsonDecoder(CodexHead)
_line = JsonDecoder(CodexLine)


class Codex(LineSource):
    """Codex CLI, its desktop application and its editor extension: they share their files."""

    agent = "codex"
    folders = staticmethod(paths.folders)
    settings = staticmethod(paths.settings)
    transcripts = staticmethod(paths.transcripts)

    def parser(self, transcript: Transcript, carry: bytes = b"") -> RolloutParser:
        return RolloutParser(carry)

    def records(self, transcript: Transcript, file: BinaryIO | None = None) -> Iterator[Record]:
        if file is None:
            file = open_transcript(transcript.path)
            yield from _read_earlier(transcript.path, MAX_FORKS)
        yield from super().records(transcript, file)

    def stream(self) -> CodexStreamParser:
        return CodexStreamParser()

    def recognise(self, head: bytes) -> Form | None:
        """By the first line with its marks; a rollout's may be longer than the head."""
        for line in head.split(b"\n"):
            if (first := _head.decode_or_none(line)) and (form := _form(first)):
                return form
        is_cut = b"\n" not in head and _CUT_HEADER.search(head[:256]) is not None
        return "transcript" if is_cut else None


def _read_earlier(path: str, forks: int) -> Iterator[Record]:
    """Yield what a file continues, in the file's own thread.

    Since 0.166 a fork does not repeat its history. Without it, the ledger of a recorded fork had
    23,500 tokens of system prompt instead of 8,900.
    """
    earlier = paths.find_earlier(path) if forks else None
    if earlier is None:
        return
    with suppress(UnreadableTranscript):
        file, parser = open_transcript(earlier.path), RolloutParser()
        for record in _read_earlier(earlier.path, forks - 1):
            yield _in_thread(record, earlier.thread)
        for data, events in JsonLines(file, parser).records():
            ordinal = _line.decode(data).ordinal
            if ordinal is not None and ordinal >= earlier.end_ordinal:
                return
            yield _in_thread(Record(data, events, parser.thread), earlier.thread)


def _in_thread(record: Record, thread: str) -> Record:
    events = [
        msgspec.structs.replace(event, thread=thread) if hasattr(event, "thread") else event
        for event in record.events
    ]
    return Record(record.data, events, thread, is_earlier=True)


def _form(first: CodexHead) -> Form | None:
    if first.type == "thread.started" and first.thread_id is not None:
        return "stream"
    if first.type in _ROLLOUT and first.payload is not None and first.timestamp is not None:
        return "transcript"
    if first.type is None and first.id is not None and first.timestamp is not None:
        has_old_field = bytes(first.instructions) or bytes(first.git)
        return "transcript" if has_old_field else None
    return None


SOURCE = Codex()
