"""Claude Code."""

from typing import BinaryIO

import msgspec

from brimline.agents.claude import paths
from brimline.agents.claude.fast_reader import FastReader, TailReader, read_every_record
from brimline.agents.claude.records import STREAM_KINDS, TRANSCRIPT_KINDS, ClaudeHead
from brimline.agents.claude.stream import ClaudeStreamParser
from brimline.agents.claude.transcript import TranscriptParser
from brimline.transcripts.lines import JsonLines
from brimline.transcripts.source import (
    MALFORMED,
    START,
    Cursor,
    Form,
    Reader,
    ReadMode,
    Transcript,
)

_head = msgspec.json.Decoder(ClaudeHead)


class Claude:
    """Claude Code 1.0 and newer."""

    agent = "claude"
    folders = staticmethod(paths.folders)
    settings = staticmethod(paths.settings)
    transcripts = staticmethod(paths.transcripts)

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> Reader:
        if how == "quick":
            return FastReader(transcript.path, cursor)
        if how == "end":
            return TailReader(transcript.path)
        return read_every_record(transcript.path, cursor)

    def parse(self, file: BinaryIO) -> Reader:
        return JsonLines(file, TranscriptParser())

    def stream(self) -> ClaudeStreamParser:
        return ClaudeStreamParser()

    def recognise(self, head: bytes) -> Form | None:
        """By the first line with a session: `sessionId` in transcripts, `session_id` in streams."""
        for line in head.split(b"\n"):
            try:
                first = _head.decode(line)
            except MALFORMED:
                continue
            if form := _form(first):
                return form
        return None


def _form(first: ClaudeHead) -> Form | None:
    if first.type in TRANSCRIPT_KINDS:
        titled = first.type == "summary" and first.leaf is not None
        snapshot = first.type == "file-history-snapshot" and bytes(first.snapshot) != b""
        if first.transcript_session is not None or titled or snapshot:
            return "transcript"
    if first.type in STREAM_KINDS and first.stream_session is not None:
        return "stream"
    return None


SOURCE = Claude()
