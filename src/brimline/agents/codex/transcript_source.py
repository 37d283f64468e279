"""Codex."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

import msgspec

from brimline.agents.codex import paths
from brimline.agents.codex.records import CodexLine
from brimline.agents.codex.stream import CodexStreamParser
from brimline.agents.codex.transcript import RolloutParser
from brimline.agents.transcripts.lines import JsonLines, open_transcript
from brimline.agents.transcripts.source import (
    START,
    Cursor,
    Form,
    Reader,
    ReadMode,
    Record,
    Transcript,
)
from brimline.errors import UnreadableTranscript
from brimline.files.foreign_json import JsonDecoder

_ROLLOUT = frozenset({"session_meta", "turn_context", "event_msg", "response_item", "compacted"})

_CUT_HEADER = re.compile(rb'"type"\s*:\s*"session_meta"\s*,\s*"payload"\s*:\s*\{')
_ABSENT = msgspec.Raw()
MAX_FORKS = 16  # of forks of forks, this many files are read


class _Head(msgspec.Struct, frozen=True):
    type: str | None = None
    payload: dict[str, msgspec.Raw] | None = None
    timestamp: str | None = None
    thread_id: str | None = None
    id: str | None = None
    instructions: msgspec.Raw = _ABSENT
    git: msgspec.Raw = _ABSENT


_head = JsonDecoder(_Head)
_line = JsonDecoder(CodexLine)


class Codex:
    """Codex CLI, its desktop application and its editor extension: they share their files."""

    agent = "codex"
    folders = staticmethod(paths.folders)
    settings = staticmethod(paths.settings)
    transcripts = staticmethod(paths.transcripts)

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> Reader:
        file = open_transcript(transcript.path, cursor.offset)
        return JsonLines(file, RolloutParser(cursor.carry), cursor)

    def records(self, transcript: Transcript, file: BinaryIO | None = None) -> Iterator[Record]:
        if file is None:
            file = open_transcript(transcript.path)
            yield from _read_earlier(transcript.path, MAX_FORKS)
        parser = RolloutParser()
        for data, events in JsonLines(file, parser).records():
            yield Record(data, events, parser.thread)

    def parse(self, file: BinaryIO) -> Reader:
        return JsonLines(file, RolloutParser())

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
    """Yield what a file continues, in the file's own thread."""
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


def _form(first: _Head) -> Form | None:
    if first.type == "thread.started" and first.thread_id is not None:
        return "stream"
    if first.type in _ROLLOUT and first.payload is not None and first.timestamp is not None:
        return "transcript"
    if first.type is None and first.id is not None and first.timestamp is not None:
        has_old_field = bytes(first.instructions) or bytes(first.git)
        return "transcript" if has_old_field else None
    return None


SOURCE = Codex()
