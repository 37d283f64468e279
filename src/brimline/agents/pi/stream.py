"""The events of `pi --mode json`."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from brimline.agents.pi.records import QUIET_LINES, PiMessage, PiTokens, Printed, Result
from brimline.agents.pi.transcript import moment
from brimline.events import AnyEvent, Call, Compacted, Compacting, SessionSeen, Spent, Trigger

Events: TypeAlias = Sequence[AnyEvent]

_printed = msgspec.json.Decoder(Printed)
_result = msgspec.json.Decoder(Result | None)


class _Memory(msgspec.Struct):
    """The reply that is coming, where its id is known already, and what was last said of it."""

    reply: PiMessage | None = None
    told: PiTokens | None = None


class PiStreamParser:
    """Turns the lines of a run into events; a message that is told again says nothing new."""

    def __init__(self, carry: bytes = b"") -> None:
        self._memory = msgspec.json.decode(carry, type=_Memory) if carry else _Memory()
        self._lines: dict[str, Callable[[Printed], Events]] = {
            "session": _session,
            "message_start": self._begun,
            "message_update": self._growing,
            "message_end": self._ended,
            "compaction_start": _compacting,
            "compaction_end": _compacted,
            "session_info_changed": _titled,
        }

    def carry(self) -> bytes:
        return msgspec.json.encode(self._memory)

    def feed(self, record: bytes) -> Events | None:
        line = _printed.decode(record)
        if tell := self._lines.get(line.type):
            return tell(line)
        return () if line.type in QUIET_LINES else None

    def _begun(self, line: Printed) -> Events:
        return self._partial(_reply(line), None)

    def _growing(self, line: Printed) -> Events:
        """Newer lines give the usage alone, older ones the whole message so far."""
        return self._partial(_reply(line) or self._memory.reply, line.usage)

    def _partial(self, reply: PiMessage | None, usage: PiTokens | None) -> Events:
        """Only a reply that the provider named has its id before it is whole."""
        if reply is None or not reply.named:
            return ()
        tokens = usage or reply.usage
        events = () if tokens == self._memory.told else _call(reply, tokens, final=False)
        self._memory = _Memory(reply, tokens)
        return events

    def _ended(self, line: Printed) -> Events:
        reply = _reply(line)
        events = _call(reply, reply.usage, final=True) if reply else ()
        self._memory = _Memory()
        return events


def _reply(line: Printed) -> PiMessage | None:
    message = line.message
    return message if isinstance(message, PiMessage) and message.role == "assistant" else None


def _call(reply: PiMessage, tokens: PiTokens | None, *, final: bool) -> Events:
    name = reply.call
    if tokens is None or tokens.blank or name is None:
        return ()
    at, usage = moment(reply.timestamp), tokens.usage()
    return (Call(at=at, id=name, usage=usage, model=reply.model, final=final),)


def _session(line: Printed) -> Events:
    at = moment(line.timestamp)
    seen = SessionSeen(
        at=at, session=line.id, agent="pi", project=line.cwd, records_compactions=True
    )
    return (seen,)


def _compacting(line: Printed) -> Events:
    return (Compacting(trigger=_trigger(line.reason)),)


def _compacted(line: Printed) -> Events:
    """Without a result it failed or was broken off."""
    result = _result.decode(line.result)
    if result is None:
        return ()
    done = Compacted(
        trigger=_trigger(line.reason),
        before=result.tokens_before,
        after=result.estimated_tokens_after,
    )
    cost = result.usage
    return (done,) if cost is None or cost.blank else (Spent(usage=cost.usage()), done)


def _trigger(reason: str | None) -> Trigger | None:
    """Reaching the threshold and overflowing the window are both the client's own doing."""
    if reason is None:
        return None
    return "manual" if reason == "manual" else "auto"


def _titled(line: Printed) -> Events:
    return (SessionSeen(title=line.name),) if line.name else ()
