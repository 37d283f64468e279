"""Claude Code."""

from collections.abc import Iterator
from typing import BinaryIO

from brimline.agents.claude import paths
from brimline.agents.claude.fast_reader import FastReader, TailReader, read_every_record
from brimline.agents.claude.records import STREAM_KINDS, TRANSCRIPT_KINDS, ClaudeHead
from brimline.agents.claude.stream import ClaudeStreamParser
from brimline.agents.claude.transcript import TranscriptParser
from brimline.agents.transcripts.lines import JsonLines, open_transcript
from brimline.agents.transcripts.source import (
    START,
    Cursor,
    Form,
    Lookalike,
    Reader,
    ReadMode,
    Record,
    Transcript,
)
from brimline.files.foreign_json import JsonDecoder

# Its usage is counted in another way: `input_tokens` include the cache.
QWEN_STREAM = Lookalike("stream", "its `init` has a `qwen_code_version`", is_foreign=True)

CONTENT_KINDS = frozenset({"assistant", "attachment", "user"})

SHARED_KINDS = frozenset({"assistant", "system", "user"})  # kinds that other clients write too

UNMARKED_TRANSCRIPT = Lookalike("transcript", "its records have no `userType`")
UNMARKED_STREAM = Lookalike("stream", "no `init` in its first lines has a `claude_code_version`")

_head = JsonDecoder(ClaudeHead)


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

    def records(self, transcript: Transcript, file: BinaryIO | None = None) -> Iterator[Record]:
        parser = TranscriptParser()
        file = file or open_transcript(transcript.path)
        for data, events in JsonLines(file, parser).records():
            has_content = parser.kind in CONTENT_KINDS
            yield Record(data if has_content else b"", events, parser.thread)

    def parse(self, file: BinaryIO) -> Reader:
        return JsonLines(file, TranscriptParser())

    def stream(self) -> ClaudeStreamParser:
        return ClaudeStreamParser()

    def recognise(self, head: bytes) -> Form | Lookalike | None:
        """By the first line with a mark; Qwen Code, Cursor and Amp write lines of this shape."""
        lookalike: Lookalike | None = None
        for line in head.split(b"\n"):
            first = _head.decode_or_none(line)
            match = _match(first) if first else None
            if match is QWEN_STREAM or (match and not isinstance(match, Lookalike)):
                return match
            lookalike = lookalike or match
        return lookalike


def _match(first: ClaudeHead) -> Form | Lookalike | None:
    if first.type in TRANSCRIPT_KINDS:
        titled = first.type == "summary" and first.leaf is not None
        snapshot = first.type == "file-history-snapshot" and bytes(first.snapshot) != b""
        if first.transcript_session is not None or titled or snapshot:
            is_own = first.type not in SHARED_KINDS or first.user_type is not None
            return "transcript" if is_own else UNMARKED_TRANSCRIPT
    if first.qwen_code_version is not None:
        return QWEN_STREAM
    if first.type in STREAM_KINDS and first.stream_session is not None:
        return "stream" if _is_own_line(first) else UNMARKED_STREAM
    return None


def _is_own_line(line: ClaudeHead) -> bool:
    """Whether a line has a mark of Claude Code's stream: the others are alike in other clients.

    Before 2.0 an `init` has no version. Cursor's has the source of the key, but no MCP servers.
    """
    if line.subtype == "init":
        has_source = line.api_key_source is not None and bytes(line.mcp_servers) != b""
        return line.claude_code_version is not None or has_source
    return line.type == "result" and bytes(line.model_usage) != b""


SOURCE = Claude()
