"""Pi: how its files and streams are recognised and read, and the events of a stream."""

from collections.abc import Sequence
from typing import TypeAlias

from brimline.agents.pi import paths
from brimline.agents.pi.records import (
    LINES,
    QUIET_LINES,
    PiCancelled,
    PiHead,
    PiMessage,
    PiState,
    PiStreamLine,
    PiTokens,
    Result,
)
from brimline.agents.pi.transcript import PiSessionParser
from brimline.agents.transcripts.line_source import LineSource
from brimline.agents.transcripts.source import Form, Lookalike, Parser, Transcript, parse_time
from brimline.context.events import (
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Compacting,
    SessionSeen,
    Spent,
    Trigger,
    Trimmed,
    WindowReported,
)
from brimline.files.foreign_json import JsonDecoder

Events: TypeAlias = Sequence[AnyEvent]

_printed = JsonDecoder(PiStreamLine)
_result = JsonDecoder(Result | None)
_state = JsonDecoder(PiState | None)
_cancelled = JsonDecoder(PiCancelled | None)


class PiStreamParser(Parser):
    """Turns the lines of `--mode json` and `--mode rpc` into events; the same usage gives one."""

    def __init__(self) -> None:
        self._reply: PiMessage | None = None  # being streamed, if it has an id already
        self._tokens: PiTokens | None = None  # its last usage

    def feed(self, record: bytes) -> Events | None:
        line = _printed.decode(record)
        match line.type:
            case "session":
                return _session(line)
            case "message_start":
                return self._partial_reply(_reply(line), None)
            case "message_update":  # newer lines have the usage alone, older ones the message
                return self._partial_reply(_reply(line) or self._reply, line.usage)
            case "message_end":
                return self._end_reply(_reply(line))
            case "compaction_start" | "auto_compaction_start":  # the latter in older versions
                return (Compacting(trigger=_trigger(line.reason)),)
            case "compaction_end" | "auto_compaction_end":
                return _compacted(line)
            case "session_info_changed":
                return (SessionSeen(title=line.name),) if line.name else ()
            case "response":
                return _response(line) if line.success else ()
            case _:
                return () if line.type in QUIET_LINES else None

    def _partial_reply(self, reply: PiMessage | None, usage: PiTokens | None) -> Events:
        """Only a reply that the provider named has its id before it is complete."""
        if reply is None or not reply.named:
            return ()
        tokens = usage or reply.usage
        events = () if tokens == self._tokens else _call(reply, tokens, final=False)
        self._reply, self._tokens = reply, tokens
        return events

    def _end_reply(self, reply: PiMessage | None) -> Events:
        events = _call(reply, reply.usage, final=True) if reply else ()
        self._reply = self._tokens = None
        return events


def _reply(line: PiStreamLine) -> PiMessage | None:
    message = line.message
    return message if isinstance(message, PiMessage) and message.role == "assistant" else None


def _call(reply: PiMessage, tokens: PiTokens | None, *, final: bool) -> Events:
    name = reply.call
    if tokens is None or tokens.blank or name is None:
        return ()
    return (
        Call(
            at=parse_time(reply.timestamp),
            id=name,
            usage=tokens.usage(),
            model=reply.model,
            final=final,
            provider=reply.provider,
            cost=tokens.dollars,
        ),
    )


def _session(line: PiStreamLine) -> Events:
    return (
        SessionSeen(
            at=parse_time(line.timestamp),
            session=line.id if isinstance(line.id, str) else None,
            agent="pi",
            project=line.cwd,
            records_compactions=True,
        ),
    )


def _compacted(line: PiStreamLine) -> Events:
    result = _result.decode(line.result)
    if result is None:  # it failed or was cancelled
        return ()
    done = Compacted(
        trigger=_trigger(line.reason),
        before=result.tokens_before,
        after=result.estimated_tokens_after,
        overflow=line.reason == "overflow",
    )
    tokens = result.usage
    if tokens is None or tokens.blank:
        return (done,)
    return (Spent(usage=tokens.usage(), cost=tokens.dollars), done)


def _response(line: PiStreamLine) -> Events:
    """The reply to a command of `--mode rpc`, which prints no header."""
    match line.command:
        case "get_state":
            return _seen_state(_state.decode(line.data) or PiState())
        case "new_session" | "switch_session" if not _is_cancelled(line):
            return (Cleared(),)
        case "fork" if not _is_cancelled(line):
            return (Trimmed(),)
        case _:
            return ()


def _is_cancelled(line: PiStreamLine) -> bool:
    data = _cancelled.decode(line.data)
    return data is not None and data.cancelled


def _seen_state(state: PiState) -> Events:
    seen = SessionSeen(
        session=state.session_id, agent="pi", title=state.session_name, records_compactions=True
    )
    model = state.model
    if model is None or model.id is None or model.context_window is None:
        return (seen,)
    return (seen, WindowReported(tokens=model.context_window, model=model.id))


def _trigger(reason: str | None) -> Trigger | None:
    """The other reasons, `threshold` and `overflow`, are the client's own."""
    if reason is None:
        return None
    return "manual" if reason == "manual" else "auto"


_head = JsonDecoder(PiHead)


class Pi(LineSource):
    """The Pi coding agent."""

    agent = "pi"
    folders = staticmethod(paths.folders)
    settings = staticmethod(paths.settings)
    transcripts = staticmethod(paths.transcripts)

    def parser(self, transcript: Transcript, carry: bytes = b"") -> PiSessionParser:
        return PiSessionParser(carry)

    def stream(self) -> PiStreamParser:
        return PiStreamParser()

    def recognise(self, head: bytes) -> Form | Lookalike | None:
        """By the header and the line after it, else by a message with Pi's counts.

        The output of `--mode rpc` has no header, and that of a session may be lost.
        """
        lines = head.split(b"\n")
        for place, line in enumerate(map(_head.decode_or_none, lines), 1):
            if line is not None and line.is_header:
                return _match(line, lines[place:])
            if line is not None and line.is_printed:
                return "stream"
            if line is not None and line.type == "message" and line.has_usage:
                return "transcript"
        return None


def _match(header: PiHead, others: list[bytes]) -> Form | Lookalike:
    """A header alone is a stream's: a session is written with its first reply."""
    written = [line for line in others if line.strip()]
    lines = [_head.decode_or_none(line) for line in written]
    is_printed = not lines or (lines[0] is not None and lines[0].type in LINES)
    form: Form = "stream" if is_printed else "transcript"
    if header.version is not None:
        doubt = f"its header has version {header.version}"
        return form if header.version > 0 else Lookalike(form, doubt)
    # The first version has no number.
    if any(line.has_settings or line.has_usage for line in (header, *filter(None, lines))):
        return form
    return Lookalike(form, "its header has no version, and no line names a model")


SOURCE = Pi()
