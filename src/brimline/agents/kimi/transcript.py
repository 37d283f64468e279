"""The records of a thread as events.

`usage.record` is written once for each call. The same usage is repeated when the step ends, and in
`agent.message.appended`.
"""

from collections.abc import Sequence

import msgspec

from brimline.agents.kimi.records import WIRE_GROUPS, KimiEvent, KimiRecord
from brimline.agents.transcripts.source import parse_time
from brimline.context.events import (
    MAIN,
    TRIGGERS,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Compacting,
    SessionSeen,
    Spent,
)
from brimline.files.foreign_json import JsonDecoder

_record = JsonDecoder(KimiRecord)
_event = JsonDecoder(KimiEvent)


class KimiCarry(msgspec.Struct):
    """What the parser remembers: the step, its calls, the model, and how a compaction began.

    `trigger` says who asked for it, `before` what was held then: calls may come before its end.
    """

    step: str = ""
    calls: int = 0
    model: str | None = None
    held: int | None = None  # by the last call
    trigger: str | None = None
    before: int | None = None


class WireParser:
    """Kimi Code's `wire.jsonl`; `session`, `thread` and `project` are those of the file's path."""

    def __init__(
        self,
        carry: bytes = b"",
        session: str | None = None,
        thread: str = MAIN,
        project: str | None = None,
    ) -> None:
        self._carry = msgspec.msgpack.decode(carry, type=KimiCarry) if carry else KimiCarry()
        self._session, self._project = session, project
        self.thread = thread

    def carry(self) -> bytes:
        return msgspec.msgpack.encode(self._carry)

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _record.decode(record)
        known, at = self._carry, parse_time(line.time)
        if line.agent_id is not None:
            self.thread = line.agent_id
        match line.type:
            case "metadata":
                return (self._seen(),)
            case "context.append_loop_event":
                event = _event.decode(line.event)
                if event.type == "step.begin" and event.uuid is not None:
                    known.step, known.calls = event.uuid, 0
                return ()
            case "llm.request":
                known.model = line.model
                return ()
            case "usage.record":
                return self._usage(line, at)
            case "full_compaction.begin":
                known.trigger, known.before = line.source, known.held
                trigger = TRIGGERS.get(line.source)
                return (Compacting(at=at, thread=self.thread, trigger=trigger),)
            case "context.apply_compaction":
                trigger = TRIGGERS.get(known.trigger)
                before, known.held = known.before, None
                return (Compacted(at=at, thread=self.thread, trigger=trigger, before=before),)
            case "context.clear" | "context.reset":
                known.held = None
                return (Cleared(at=at, thread=self.thread),)
            case _:
                return () if line.type.partition(".")[0] in WIRE_GROUPS else None

    def _seen(self) -> SessionSeen:
        return SessionSeen(
            session=self._session, agent="kimi", project=self._project, records_compactions=True
        )

    def _usage(self, line: KimiRecord, at: float | None) -> Sequence[AnyEvent]:
        """A call of a turn; one of the session alone wrote a summary."""
        if line.usage is None:
            return ()
        known, usage = self._carry, line.usage.usage
        if line.usage_scope != "turn":
            id = f"{self.thread}@{line.time}"
            return (Spent(at=at, id=id, usage=usage, model=known.model, thread=self.thread),)
        known.calls += 1
        known.held = usage.held
        id = known.step if known.calls == 1 else f"{known.step}.{known.calls}"
        return (Call(at=at, id=id, usage=usage, model=known.model, thread=self.thread),)
