"""The lines of `claude -p --output-format stream-json` as events."""

from collections.abc import Iterator, Sequence

import msgspec

from brimline.agents.claude.records import STREAM_KINDS, ClaudeStreamLine, Kind
from brimline.agents.claude.transcript import compacted
from brimline.events import (
    MAIN,
    AnyEvent,
    Call,
    Compacting,
    SessionSeen,
    Spent,
    WindowReported,
)
from brimline.providers.anthropic import MessageStream, StreamedMessage, usage_of
from brimline.transcripts.source import parse_time
from brimline.usage import Usage
from brimline.windows import normalize_model

_line = msgspec.json.Decoder(ClaudeStreamLine)
_kind = msgspec.json.Decoder(Kind)

READ = frozenset({"assistant", "stream_event", "result"})
READ_SYSTEM = frozenset({"init", "compact_boundary", "status"})


class ClaudeStreamParser:
    """One run's stream: a line a content block, several init and result lines, subagents between.

    Without --include-partial-messages a call's output is what message_start said (1 or so): the
    prompt side is exact, the reply is not until the turn's result. That ends the calls of the turn;
    the output that it tells beyond theirs is the only call's, or, of several, told as Spent.
    """

    def __init__(self) -> None:
        self._asked_for: str | None = None
        self._streams: dict[str, MessageStream] = {}
        self._turn: dict[str, Call] = {}
        self._final: set[str] = set()

    def carry(self) -> bytes:
        """A stream is read from its beginning, always."""
        return b""

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        try:
            line = _line.decode(record)
        except msgspec.ValidationError:
            return _unfitting(record)
        match line.type:
            case "assistant":
                return self._assistant(line)
            case "stream_event":
                return self._event(line)
            case "system":
                return self._system(line)
            case "result":
                return (*self._windows(line), *self._ended_turn(line))
            case _:
                return () if line.type in STREAM_KINDS else None

    def _assistant(self, line: ClaudeStreamLine) -> Sequence[AnyEvent]:
        message = line.message
        if message is None or message.usage is None or message.id is None:
            return ()
        usage = usage_of(message.usage)
        if usage is None or self._finished(line, message.id):
            return ()
        told = StreamedMessage(message.id, message.model, usage, final=False)
        return (self._call(line, told),)

    def _finished(self, line: ClaudeStreamLine, call: str) -> bool:
        """Whether the raw events told this call better already."""
        stream = self._streams.get(_thread(line))
        return call in self._final or (stream is not None and stream.is_current(call))

    def _event(self, line: ClaudeStreamLine) -> Sequence[AnyEvent]:
        if not bytes(line.event):
            return ()
        stream = self._streams.setdefault(_thread(line), MessageStream())
        told = stream.feed(msgspec.json.decode(line.event))
        return (self._call(line, told),) if told else ()

    def _call(self, line: ClaudeStreamLine, told: StreamedMessage) -> Call:
        thread = _thread(line)
        if told.final:
            self._final.add(told.id)
        asked = self._asked_for if thread == MAIN else None
        fits = (
            asked is not None
            and told.model is not None
            and normalize_model(asked) == normalize_model(told.model)
        )
        call = Call(
            at=parse_time(line.timestamp),
            id=told.id,
            usage=told.usage,
            model=told.model,
            asked_for=asked if fits else None,
            thread=thread,
            final=told.final,
        )
        if thread == MAIN:
            self._turn[call.id] = call
        return call

    def _system(self, line: ClaudeStreamLine) -> Sequence[AnyEvent]:
        match line.subtype:
            case "init":
                self._asked_for = line.model
                return (_seen(line),)
            case "compact_boundary":
                return (compacted(line.compact_metadata, line.timestamp, MAIN),)
            case "status" if line.status == "compacting":
                return (Compacting(at=parse_time(line.timestamp)),)
            case _:
                return ()

    def _windows(self, line: ClaudeStreamLine) -> Iterator[AnyEvent]:
        for name, told in line.model_usage.items():
            if told.context_window is None:
                continue
            for model in dict.fromkeys((name, normalize_model(name), told.canonical_model or name)):
                yield WindowReported(tokens=told.context_window, model=model)

    def _ended_turn(self, line: ClaudeStreamLine) -> Iterator[AnyEvent]:
        turn, self._turn = list(self._turn.values()), {}
        told = sum(call.usage.output for call in turn)
        unseen = max(0, line.usage.output_tokens - told) if line.usage is not None else 0
        under_way = [call for call in turn if not call.final]
        alone = unseen if len(under_way) == 1 else 0
        for call in under_way:
            self._final.add(call.id)
            usage = call.usage + Usage(0, 0, 0, alone)
            yield msgspec.structs.replace(call, usage=usage, final=True)
        if unseen > alone:
            yield Spent(usage=Usage(0, 0, 0, unseen - alone))


def _unfitting(record: bytes) -> Sequence[AnyEvent] | None:
    """A line that we do not read may look any way; one that we read may not."""
    kind = _kind.decode(record)
    named = kind.subtype if isinstance(kind.subtype, str) else ""
    if kind.type in READ or (kind.type == "system" and named in READ_SYSTEM):
        _line.decode(record)
    return () if kind.type in STREAM_KINDS else None


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
