"""What is written when there is something to say: the signal, and the messages that it brings."""

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
from brimline.monitor.texts import Figures
from brimline.policy.signals import THRASH_WINDOW_S, Signal, is_thrashing
from brimline.store.base import CancelMessages, MarkMessage, RecordSignal, Write
from brimline.store.rows import SignalKind, SignalRow
from brimline.tracker import Reading

RECENT = 101
"""So many last calls tell the pace."""


def key(*parts: str) -> str:
    """An id that is the same for the same parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def left_for(watched: SessionState, thread: str, reading: Reading) -> int | None:
    """How many calls are left until the limit, at the pace of this cycle."""
    known = watched.folded.threads.get(thread)
    if known is None or reading.held is None or reading.limit is None:
        return None
    begun = max(known.cycle_start, known.call_count - RECENT)
    sents = [call.usage.sent for call in known.calls_from(begun)]
    return calls_left(sents, reading.held, reading.limit.tokens)


class SignalWriter(msgspec.Struct, frozen=True):
    """One thing to say of a thread, and where that is by then.

    `arm` is how often the levels of the cycle were armed anew, `told` are those that were told in
    it, and `compactions` the times of those before this.
    """

    watched: SessionState
    thread: str
    reading: Reading
    rules: Rules
    said: Signal
    at: float
    arm: int
    told: Sequence[tuple[float, int]]
    compactions: Sequence[float]

    @classmethod
    def of(
        cls, session: MonitoredSession, rules: Rules, thread: str, said: Signal, at: float
    ) -> "SignalWriter":
        """Something to say of a session's thread now."""
        watched, before = session.state, session.signals
        arm, told = before.arm(thread, said.cycle), before.told(thread, said.cycle)
        now, compactions = watched.last[thread], tuple(before.compactions)
        return cls(watched, thread, now, rules, said, at, arm, told, compactions)

    def writes(self) -> list[Write]:
        """What to write for it."""
        said = self.said
        signal = SignalRow(
            session=self.watched.id,
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
                # What a lower level had to say, and was not told yet, is no news any more.
                return [self._cancel(), RecordSignal(signal, self._of_level(signal))]
            case "compacted" if self.thread == MAIN:
                told = self._to_parent(self.rules.texts.of("compacted", self._figures()), signal)
                return [*self._cycle_ended(), RecordSignal(signal, told), *self._thrash(signal)]
            case "compacted" | "cleared":
                return [*self._cycle_ended(), RecordSignal(signal)]
            case _:
                return [RecordSignal(signal)]

    def level_text(self) -> str:
        """What the agent is told at a level."""
        return self.rules.texts.of_level(self._figures(), self._levels(), self.thread)

    def _levels(self) -> tuple[float, ...]:
        watched = self.watched
        return self.rules.levels_of(watched.id, watched.agent, watched.model_of(self.thread))

    def _cancel(self) -> CancelMessages:
        return CancelMessages(self.watched.id, self.thread, self.said.cycle)

    def _cycle_ended(self) -> list[Write]:
        """What was to be said of the cycle's levels is no news any more, to the parent neither."""
        parent = self.watched.parent
        if parent is None or self.thread != MAIN:
            return [self._cancel()]
        ids = [self._id_to(parent, "level", level, arm) for level, arm in self.told]
        return [self._cancel(), *(MarkMessage(id, "cancelled", ("queued",), self.at) for id in ids)]

    def _figures(self) -> Figures:
        return Figures(
            session=self.watched.id,
            project=self.watched.project,
            reading=self.reading,
            agent=self.watched.agent,
            level=self.said.level,
            calls_left=left_for(self.watched, self.thread, self.reading),
            compactions=1 + sum(1 for at in self.compactions if at >= self.at - THRASH_WINDOW_S),
        )

    def _thrash(self, signal: SignalRow) -> list[Write]:
        """It is said when it begins, and not again while it goes on."""
        begun = is_thrashing(self.compactions, self.at)
        if begun or not is_thrashing([*self.compactions, self.at], self.at):
            return []
        text = self.rules.texts.of("thrash", self._figures())
        row = msgspec.structs.replace(signal, kind="thrash", text=text)
        return [RecordSignal(row, self._to_parent(text, row))]

    def _of_level(self, signal: SignalRow) -> tuple[Message, ...]:
        last = self.said.level == self._levels()[-1]
        if self.thread != MAIN and not capabilities_of(self.watched.agent).answers_subagent_hooks:
            return ()
        own = self._own("urgent" if last or self.thread != MAIN else "sequential")
        if not last or self.thread != MAIN:
            return own
        return (*own, *self._to_parent(self.rules.texts.of("parent", self._figures()), signal))

    def _own(self, urgency: Urgency) -> tuple[Message, ...]:
        said, text = self.said, self.level_text()
        arm = (str(self.arm),) if self.arm else ()
        message = Message(
            id=key(self.watched.id, self.thread, str(said.cycle), f"{said.level:g}", *arm),
            session=self.watched.id,
            text=text,
            at=self.at,
            urgency=urgency,
            thread=self.thread,
            cycle=said.cycle,
            level=said.level,
            expires=self.at + MESSAGE_LIFETIME_S,
        )
        return (message,) if text.strip() else ()

    def _to_parent(self, text: str, signal: SignalRow) -> tuple[Message, ...]:
        parent = self.watched.parent
        if parent is None or parent == self.watched.id or not text.strip():
            return ()
        id, expires = (
            self._id_to(parent, signal.kind, signal.level, signal.arm),
            self.at + MESSAGE_LIFETIME_S,
        )
        return (Message(id, parent, text, self.at, sender=self.watched.id, expires=expires),)

    def _id_to(self, parent: str, kind: SignalKind, level: float, arm: int) -> str:
        """By what a message to the parent is known: it is told each thing once."""
        parts = (parent, self.watched.id, kind, str(self.said.cycle), str(level))
        return key(*parts, *((str(arm),) if arm else ()))
