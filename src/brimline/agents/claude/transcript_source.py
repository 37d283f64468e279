"""Claude Code: how its files and streams are recognised and read, and the events of a stream."""

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import msgspec

from brimline.agents.claude import paths
from brimline.agents.claude.fast_reader import FastReader, TailReader, read_every_record
from brimline.agents.claude.records import (
    STREAM_KINDS,
    TRANSCRIPT_KINDS,
    ClaudeHead,
    ClaudeStreamLine,
    Kind,
    RateLimitInfo,
)
from brimline.agents.claude.transcript import TranscriptParser, compacted
from brimline.agents.transcripts.lines import JsonLines, open_transcript
from brimline.agents.transcripts.source import (
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
    Compacting,
    SessionSeen,
    Spent,
    WindowReported,
)
from brimline.context.providers.anthropic import (
    MESSAGES,
    MessageStream,
    MessageUsage,
    StreamedMessage,
    other_passes,
    service_tier_of,
    spent_on,
    usage_of,
)
from brimline.context.usage import Usage
from brimline.context.window import normalize_model, requested_id
from brimline.errors import UnexpectedJson
from brimline.files.foreign_json import JsonDecoder, decode_json

_line = JsonDecoder(ClaudeStreamLine)
_kind = JsonDecoder(Kind)
_rate_limit = JsonDecoder(RateLimitInfo)

READ = frozenset({"assistant", "stream_event", "result"})
READ_SYSTEM = frozenset({"init", "compact_boundary", "status"})


class ClaudeStreamParser(Parser):
    """One run of `claude -p --output-format stream-json`: a line per content block.

    There are several init and result lines, and those of subagents between.

    Without --include-partial-messages a call's output is that of message_start (about 1): only the
    prompt side is exact. The turn's result has the output of its last call, and the sum of all.
    What is missing then is added to the call if it is one, and else reported as Spent.
    """

    def __init__(self) -> None:
        self._asked_for: str | None = None
        self._streams: dict[str, MessageStream] = {}
        self._turn: dict[str, Call] = {}
        self._of_subagents: dict[str, Call] = {}  # the last call of each that is running
        self._final: set[str] = set()
        self._unnamed: dict[str, tuple[Usage, str]] = {}  # the last call without id, by thread
        self._is_foreign = False  # of Qwen Code, whose usage is counted in another way

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        try:
            line = _line.decode(record)
        except UnexpectedJson:
            kind = _check_unread(record)
            if kind.subtype == "task_notification":  # its `usage` is not a message's
                return self._end_subagent(kind.tool_use_id)
            return () if kind.type in STREAM_KINDS else None
        self._is_foreign = self._is_foreign or line.qwen_code_version is not None
        if self._is_foreign:
            return None
        match line.type:
            case "assistant":
                return self._assistant(line)
            case "stream_event":
                return self._event(line)
            case "system":
                return self._system(line)
            case "result":
                return (*self._windows(line), *self._end_turn(line))
            case "rate_limit_event":
                info = _rate_limit.decode_or_none(line.rate_limit_info)
                return (SessionSeen(quotas=info.quotas),) if info and info.quotas.known else ()
            case _:
                return () if line.type in STREAM_KINDS else None

    def _assistant(self, line: ClaudeStreamLine) -> Sequence[AnyEvent]:
        message = line.message
        if message is None or message.usage is None or (usage := usage_of(message.usage)) is None:
            return ()
        id = message.id or line.request_id or self._make_id(line, usage)
        if self._has_better(line, id):
            return ()
        tier = service_tier_of(message.usage)
        others = other_passes(message.usage, message.model, tier)
        streamed = StreamedMessage(id, message.model, usage, False, others, tier)
        return self._calls(line, streamed)

    def _make_id(self, line: ClaudeStreamLine, usage: Usage) -> str:
        """Return an id for a call without one: that of its first line; its lines have one usage."""
        thread = _thread(line)
        last = self._unnamed.get(thread)
        if last is None or last[0] != usage:
            last = (usage, line.uuid or f"{thread}@{usage.sent}")
            self._unnamed[thread] = last
        return last[1]

    def _has_better(self, line: ClaudeStreamLine, call: str) -> bool:
        """Whether the raw events have reported this call already, with better figures."""
        stream = self._streams.get(_thread(line))
        return call in self._final or (stream is not None and stream.is_current(call))

    def _event(self, line: ClaudeStreamLine) -> Sequence[AnyEvent]:
        if not bytes(line.event):
            return ()
        stream = self._streams.setdefault(_thread(line), MessageStream())
        message = stream.feed(decode_json(line.event, object))
        return self._calls(line, message) if message else ()

    def _calls(self, line: ClaudeStreamLine, message: StreamedMessage) -> Sequence[AnyEvent]:
        thread = _thread(line)
        if message.final:
            self._final.add(message.id)
        requested = self._asked_for if thread == MAIN else None
        call = Call(
            at=parse_time(line.timestamp),
            id=message.id,
            usage=message.usage,
            model=message.model,
            asked_for=None if requested is None else requested_id(requested, message.model),
            thread=thread,
            final=message.final,
            service_tier=message.service_tier,
        )
        if thread == MAIN:
            self._turn[call.id] = call
        else:
            self._of_subagents[thread] = call
        return (*spent_on(message.others, message.id, thread, call.at), call)

    def _system(self, line: ClaudeStreamLine) -> Sequence[AnyEvent]:
        match line.subtype:
            case "init":  # again after a background task and after /compact (2.1.325)
                self._asked_for = line.model
                return (_seen(line),)
            case "compact_boundary":
                return (compacted(line.compact_metadata, line.timestamp, MAIN),)
            case "status" if line.status == "compacting":
                return (Compacting(at=parse_time(line.timestamp)),)
            case _:
                return ()

    def _end_subagent(self, thread: object) -> Sequence[AnyEvent]:
        """End the last call of a subagent: without partial messages nothing else does."""
        call = self._of_subagents.pop(thread, None) if isinstance(thread, str) else None
        if call is None or call.final:
            return ()
        self._final.add(call.id)
        return (msgspec.structs.replace(call, final=True),)

    def _windows(self, line: ClaudeStreamLine) -> Iterator[AnyEvent]:
        for name, model in line.model_usage.items():
            if model.context_window is None:
                continue
            names = (name, normalize_model(name), model.canonical_model or name)
            for each in dict.fromkeys(names):
                yield WindowReported(tokens=model.context_window, model=each)

    def _end_turn(self, line: ClaudeStreamLine) -> Iterator[AnyEvent]:
        turn, self._turn = list(self._turn.values()), {}
        if turn and (last := _completed(turn[-1], line.usage)) is not None:
            turn[-1] = last
            self._final.add(last.id)
            yield last
        reported = sum(call.usage.output for call in turn)
        total = line.usage.output_tokens if line.usage is not None else None
        missing = 0 if total is None else max(0, total - reported)
        partial = [call for call in turn if not call.final]
        of_call = missing if len(partial) == 1 else 0
        for call in partial:
            self._final.add(call.id)
            usage = call.usage + Usage(0, 0, 0, of_call)
            yield msgspec.structs.replace(call, usage=usage, final=True)
        if missing > of_call:
            yield Spent(usage=Usage(0, 0, 0, missing - of_call))


def _completed(call: Call, result: MessageUsage | None) -> Call | None:
    """A turn's last call with its whole output; None if that is known, or is not in the result.

    Claude Code 2.1.325 adds up the counts of a turn, and takes the `iterations` of its last call.
    """
    passes = (result.iterations if result is not None else None) or ()
    if call.final or len(passes) != 1:
        return None
    usage = MESSAGES.usage(passes[0])
    is_same = usage.sent == call.usage.sent and usage.output >= call.usage.output
    return msgspec.structs.replace(call, usage=usage, final=True) if is_same else None


def _check_unread(record: bytes) -> Kind:
    """Return a kind that we do not read, of any shape; raises for the others."""
    kind = _kind.decode(record)
    subtype = kind.subtype if isinstance(kind.subtype, str) else ""
    if kind.type in READ or (kind.type == "system" and subtype in READ_SYSTEM):
        _line.decode(record)
    return kind


def _thread(line: ClaudeStreamLine) -> str:
    return line.parent_tool_use_id or MAIN


def _seen(line: ClaudeStreamLine) -> SessionSeen:
    return SessionSeen(
        session=line.session_id,
        agent="claude",
        project=line.cwd,
        version=line.claude_code_version,
        records_compactions=True,
    )


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
