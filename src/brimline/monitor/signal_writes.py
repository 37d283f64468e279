"""The writes for a signal: its row, and the messages to the agent and its parent."""

import hashlib
from collections.abc import Sequence

import msgspec

from brimline.agents import capabilities_of
from brimline.events import MAIN
from brimline.forecast import calls_left
from brimline.inbox import MESSAGE_LIFETIME_S, Message, Urgency
from brimline.monitor.monitored_session import MonitoredSession
from brimline.monitor.rules import Rules
from brimline.monitor.session_state import SessionState
from brimline.monitor.texts import TemplateValues
from brimline.policy.signals import THRASH_WINDOW_S, Signal, is_thrashing
from brimline.store.base import CancelMessages, MarkMessage, RecordSignal, Write
from brimline.store.rows import SignalKind, SignalRow
from brimline.tracker import Reading

PACE_CALLS = 101  # the last calls from which the pace is computed


def hash_id(*parts: str) -> str:
    """Return an id that is the same for the same parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def calls_left_of(state: SessionState, thread: str, reading: Reading) -> int | None:
    """Return how many calls are left until the limit, at the pace of this cycle."""
    known = state.folded.threads.get(thread)
    if known is None or reading.held is None or reading.limit is None:
        return None
    begun = max(known.cycle_start, known.call_count - PACE_CALLS)
    sents = [call.usage.sent for call in known.calls_from(begun)]
    return calls_left(sents, reading.held, reading.limit.tokens)


class SignalWriter(msgspec.Struct, frozen=True):
    """One thing to say of a thread, and where that is by then.

    `arm` is how often the levels of the cycle were armed anew, `told` are those that were told in
    it, and `compactions` the times of those before this.
    """

    state: SessionState
    thread: str
    reading: Reading
    rules: Rules
    said: Signal
    at: float
    arm: int
    fired_levels: Sequence[tuple[float, int]]
    compactions: Sequence[float]

    @classmethod
    def for_session(
        cls, session: MonitoredSession, rules: Rules, thread: str, signal: Signal, at: float
    ) -> "SignalWriter":
        """Return the writer for a signal of a session's thread now."""
        state, before = session.state, session.signals
        arm, told = (
            before.rearm_count(thread, signal.cycle),
            before.fired_levels(thread, signal.cycle),
        )
        now, compactions = state.last_readings[thread], tuple(before.compactions)
        return cls(state, thread, now, rules, signal, at, arm, told, compactions)

    def writes(self) -> list[Write]:
        """Return the writes."""
        said = self.said
        signal = SignalRow(
            session=self.state.id,
            thread=self.thread,
            cycle=said.cycle,
            kind=said.kind,
            at=self.at,
            level=said.level,
            arm=self.arm if said.kind == "level" else 0,
            sent=self.reading.sent,
            percent=self.reading.percent,
        )
        match said.kind:
            case "level":
                # A lower level's message that is still pending is out of date.
                return [self._cancel(), RecordSignal(signal, self._level_messages(signal))]
            case "compacted" if self.thread == MAIN:
                told = self._parent_message(
                    self.rules.texts.text("compacted", self._figures()), signal
                )
                return [*self._cycle_ended(), RecordSignal(signal, told), *self._thrash(signal)]
            case "compacted" | "cleared":
                return [*self._cycle_ended(), RecordSignal(signal)]
            case _:
                return [RecordSignal(signal)]

    def level_text(self) -> str:
        """Return the text of a level message."""
        return self.rules.texts.level_text(self._figures(), self._levels(), self.thread)

    def _levels(self) -> tuple[float, ...]:
        state = self.state
        return self.rules.levels_of(state.id, state.agent, state.model_of(self.thread))

    def _cancel(self) -> CancelMessages:
        return CancelMessages(self.state.id, self.thread, self.said.cycle)

    def _cycle_ended(self) -> list[Write]:
        """Cancel the messages about the cycle's levels, those to the parent too."""
        parent = self.state.parent
        if parent is None or self.thread != MAIN:
            return [self._cancel()]
        ids = [
            self._parent_message_id(parent, "level", level, arm) for level, arm in self.fired_levels
        ]
        return [self._cancel(), *(MarkMessage(id, "cancelled", ("queued",), self.at) for id in ids)]

    def _figures(self) -> TemplateValues:
        return TemplateValues(
            session=self.state.id,
            project=self.state.project,
            reading=self.reading,
            agent=self.state.agent,
            level=self.said.level,
            calls_left=calls_left_of(self.state, self.thread, self.reading),
            compactions=1 + sum(1 for at in self.compactions if at >= self.at - THRASH_WINDOW_S),
        )

    def _thrash(self, signal: SignalRow) -> list[Write]:
        """Return the writes when thrashing begins; none while it goes on."""
        begun = is_thrashing(self.compactions, self.at)
        if begun or not is_thrashing([*self.compactions, self.at], self.at):
            return []
        text = self.rules.texts.text("thrash", self._figures())
        row = msgspec.structs.replace(signal, kind="thrash", text=text)
        return [RecordSignal(row, self._parent_message(text, row))]

    def _level_messages(self, signal: SignalRow) -> tuple[Message, ...]:
        last = self.said.level == self._levels()[-1]
        if self.thread != MAIN and not capabilities_of(self.state.agent).answers_subagent_hooks:
            return ()
        own = self._own_message("urgent" if last or self.thread != MAIN else "sequential")
        if not last or self.thread != MAIN:
            return own
        return (
            *own,
            *self._parent_message(self.rules.texts.text("parent", self._figures()), signal),
        )

    def _own_message(self, urgency: Urgency) -> tuple[Message, ...]:
        said, text = self.said, self.level_text()
        arm = (str(self.arm),) if self.arm else ()
        message = Message(
            id=hash_id(self.state.id, self.thread, str(said.cycle), f"{said.level:g}", *arm),
            session=self.state.id,
            text=text,
            at=self.at,
            urgency=urgency,
            thread=self.thread,
            cycle=said.cycle,
            level=said.level,
            expires=self.at + MESSAGE_LIFETIME_S,
        )
        return (message,) if text.strip() else ()

    def _parent_message(self, text: str, signal: SignalRow) -> tuple[Message, ...]:
        parent = self.state.parent
        if parent is None or parent == self.state.id or not text.strip():
            return ()
        id, expires = (
            self._parent_message_id(parent, signal.kind, signal.level, signal.arm),
            self.at + MESSAGE_LIFETIME_S,
        )
        return (Message(id, parent, text, self.at, sender=self.state.id, expires=expires),)

    def _parent_message_id(
        self, parent: str, kind: SignalKind, level: float, rearm_count: int
    ) -> str:
        """Return the id of a message to the parent, so that it gets each one once."""
        parts = (parent, self.state.id, kind, str(self.said.cycle), str(level))
        return hash_id(*parts, *((str(rearm_count),) if rearm_count else ()))
