"""What is written when there is something to say: the signal, and the messages that it brings."""

import hashlib
from collections.abc import Sequence
from itertools import islice

import msgspec

from brimline.events import MAIN
from brimline.forecast import calls_left
from brimline.inbox import LIFETIME, Message, Urgency
from brimline.monitor.rules import Rules
from brimline.monitor.texts import Figures
from brimline.monitor.watched import Watched
from brimline.policy.signals import THRASH_WITHIN, Said, thrashes
from brimline.store.base import Cancel, Fire, Write
from brimline.store.rows import SignalRow
from brimline.tracker import Reading

RECENT = 101
"""So many last calls tell the pace."""


def key(*parts: str) -> str:
    """An id that is the same for the same parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def left_for(watched: Watched, thread: str, reading: Reading) -> int | None:
    """How many calls are left until the limit, at the pace of this cycle."""
    known = watched.folded.threads.get(thread)
    if known is None or reading.held is None or reading.limit is None:
        return None
    begun = max(known.begun, len(known.calls) - RECENT)
    sents = [call.usage.sent for call in islice(known.calls.values(), begun, None)]
    return calls_left(sents, reading.held, reading.limit.tokens)


class Telling(msgspec.Struct, frozen=True):
    """A thread at the moment when something is to be said of it."""

    watched: Watched
    thread: str
    reading: Reading
    rules: Rules
    at: float
    arm: int
    compactions: Sequence[float]

    def writes(self, said: Said) -> list[Write]:
        """What to write for one thing that is said."""
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
                return [self._cancel(said), Fire(signal, self._of_level(said, signal))]
            case "compacted" if self.thread == MAIN:
                text = self.rules.texts.of("compacted", self._figures(said))
                told = self._to_parent(text, signal)
                return [self._cancel(said), Fire(signal, told), *self._thrash(said, signal)]
            case "compacted" | "cleared":
                return [self._cancel(said), Fire(signal)]
            case _:
                return [Fire(signal)]

    def _levels(self) -> tuple[float, ...]:
        watched = self.watched
        return self.rules.levels_of(watched.id, watched.agent, watched.model)

    def _cancel(self, said: Said) -> Cancel:
        return Cancel(self.watched.id, self.thread, said.cycle)

    def _figures(self, said: Said) -> Figures:
        return Figures(
            session=self.watched.id,
            project=self.watched.project,
            reading=self.reading,
            agent=self.watched.agent,
            level=said.level,
            calls_left=left_for(self.watched, self.thread, self.reading),
            compactions=1 + sum(1 for at in self.compactions if at >= self.at - THRASH_WITHIN),
        )

    def _thrash(self, said: Said, signal: SignalRow) -> list[Write]:
        if not thrashes([*self.compactions, self.at], self.at):
            return []
        text = self.rules.texts.of("thrash", self._figures(said))
        row = msgspec.structs.replace(signal, kind="thrash", text=text)
        return [Fire(row, self._to_parent(text, row))]

    def _of_level(self, said: Said, signal: SignalRow) -> tuple[Message, ...]:
        levels = self._levels()
        last = said.level == levels[-1]
        figures = self._figures(said)
        text = self.rules.texts.of_level(figures, levels, self.thread)
        own = self._own(said, text, "urgent" if last or self.thread != MAIN else "sequential")
        if not last or self.thread != MAIN:
            return (own,)
        return (own, *self._to_parent(self.rules.texts.of("parent", figures), signal))

    def _own(self, said: Said, text: str, urgency: Urgency) -> Message:
        arm = (str(self.arm),) if self.arm else ()
        return Message(
            id=key(self.watched.id, self.thread, str(said.cycle), f"{said.level:g}", *arm),
            session=self.watched.id,
            text=text,
            at=self.at,
            urgency=urgency,
            thread=self.thread,
            cycle=said.cycle,
            level=said.level,
            expires=self.at + LIFETIME,
        )

    def _to_parent(self, text: str, signal: SignalRow) -> tuple[Message, ...]:
        parent = self.watched.parent
        if parent is None or parent == self.watched.id:
            return ()
        parts = (parent, self.watched.id, signal.kind, str(signal.cycle), str(signal.level))
        arm = (str(signal.arm),) if signal.arm else ()
        expires = self.at + LIFETIME
        id = key(*parts, *arm)
        return (Message(id, parent, text, self.at, sender=self.watched.id, expires=expires),)
