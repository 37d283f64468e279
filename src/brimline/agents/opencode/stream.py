"""The lines of `opencode run --format json` as events."""

from collections.abc import Sequence

from brimline.agents.opencode.records import STREAM_KINDS, OpencodeStreamLine, StreamPart
from brimline.agents.opencode.transcript import usage_of
from brimline.agents.transcripts.source import parse_time
from brimline.context.events import AnyEvent, Call, Compacted, Ended, SessionSeen, compaction_thread
from brimline.files.foreign_json import JsonDecoder

_line = JsonDecoder(OpencodeStreamLine)
_part = JsonDecoder(StreamPart)


class OpencodeStreamParser:
    """The stream of one run: each finished step is a call of the session's own thread.

    Nothing marks the call that writes a compaction's summary; only the text after it has a mark.
    """

    def __init__(self) -> None:
        self._session: str | None = None
        self._message: str | None = None  # of the last call
        self._call: str | None = None  # the last one

    def carry(self) -> bytes:
        return b""

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _line.decode(record)
        if line.type not in STREAM_KINDS:
            return None
        events: Sequence[AnyEvent] = ()
        if line.type == "step_finish":
            events = self._finish_step(_part.decode(line.part), parse_time(line.timestamp))
        elif line.type == "text":
            events = self._text(_part.decode(line.part), parse_time(line.timestamp))
        if line.session is None or line.session == self._session:
            return events
        self._session = line.session
        seen = SessionSeen(session=line.session, agent="opencode", records_compactions=True)
        return (seen, *events)

    def _text(self, part: StreamPart, at: float | None) -> Sequence[AnyEvent]:
        if part.metadata is None or not part.metadata.compaction_continue:
            return ()
        compacted = Compacted(at=at, trigger="auto", summary_call=self._call)
        ended = Ended(at=at, thread=compaction_thread())
        return (compacted,) if self._call is None else (compacted, ended)

    def _finish_step(self, part: StreamPart, at: float | None) -> Sequence[AnyEvent]:
        usage = usage_of(part.tokens)
        id = part.id if part.message == self._message else part.message
        if usage is None or id is None:
            return ()
        self._message, self._call = part.message, id
        return (Call(at=at, id=id, usage=usage, cost=part.cost or None),)
