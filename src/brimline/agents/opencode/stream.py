"""What `opencode run --format json` prints, as events."""

from collections.abc import Sequence

import msgspec

from brimline.agents.opencode.records import STREAM_KINDS, OpencodeStreamLine, StreamPart
from brimline.agents.opencode.transcript import seconds, usage_of
from brimline.events import AnyEvent, Call, Compacted, SessionSeen
from brimline.transcripts.document import decode_record
from brimline.usage import Usage

_line = msgspec.json.Decoder(OpencodeStreamLine)
_part = msgspec.json.Decoder(StreamPart)


class StreamCarry(msgspec.Struct):
    """What the parser remembers: the session, the message of the last call, the last two usages."""

    session: str | None = None
    message: str | None = None
    before: Usage | None = None
    last: Usage | None = None


class OpencodeStreamParser:
    """The stream of one run: each finished step is a call of the session's own thread.

    Nothing marks the call that writes a compaction's summary; only what follows tells of it.
    """

    def __init__(self, carry: bytes = b"") -> None:
        self._carry = msgspec.msgpack.decode(carry, type=StreamCarry) if carry else StreamCarry()

    def carry(self) -> bytes:
        return msgspec.msgpack.encode(self._carry)

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = decode_record(_line, record)
        if line.type not in STREAM_KINDS:
            return None
        events: Sequence[AnyEvent] = ()
        if line.type in ("step_finish", "text"):
            events = self._told(line.type, decode_record(_part, line.part), seconds(line.timestamp))
        return (*self._seen(line), *events)

    def _seen(self, line: OpencodeStreamLine) -> Sequence[AnyEvent]:
        if line.session is None or line.session == self._carry.session:
            return ()
        self._carry.session = line.session
        return (SessionSeen(session=line.session, agent="opencode", records_compactions=True),)

    def _told(self, kind: str, part: StreamPart, at: float | None) -> Sequence[AnyEvent]:
        if kind == "step_finish":
            return self._step(part, at)
        if part.metadata is None or not part.metadata.compaction_continue:
            return ()
        before = self._carry.before
        return (Compacted(at=at, trigger="auto", before=before.held if before else None),)

    def _step(self, part: StreamPart, at: float | None) -> Sequence[AnyEvent]:
        usage, known = usage_of(part.tokens), self._carry
        id = part.id if part.message == known.message else part.message
        if usage is None or id is None:
            return ()
        known.message, known.before, known.last = part.message, known.last, usage
        return (Call(at=at, id=id, usage=usage),)
