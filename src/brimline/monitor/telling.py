"""What is written when there is something to say: the signal, and the messages that it brings."""

import hashlib
from collections.abc import Sequence

import msgspec

from brimline.events import MAIN
from brimline.inbox import LIFETIME, Message
from brimline.monitor.rules import Rules
from brimline.monitor.texts import compacted_text, level_text, parent_text
from brimline.monitor.watched import Watched
from brimline.policy.signals import Said, thrashes
from brimline.store.base import Cancel, Fire, SignalRow, Write
from brimline.tracker import Reading


def key(*parts: str) -> str:
    """An id that is the same for the same parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


class Telling(msgspec.Struct, frozen=True):
    """A session at the moment when something is to be said of it."""

    watched: Watched
    reading: Reading
    rules: Rules
    at: float
    compactions: Sequence[float]

    def writes(self, said: Said) -> list[Write]:
        """What to write for one thing that is said."""
        signal = SignalRow(
            session=self.watched.id,
            thread=MAIN,
            cycle=said.cycle,
            kind=said.kind,
            at=self.at,
            level=said.level,
            sent=self.reading.sent,
            percent=self.reading.percent,
        )
        match said.kind:
            case "level":
                # What a lower level had to say, and was not told yet, is no news any more.
                cancel = Cancel(self.watched.id, MAIN, said.cycle)
                return [cancel, Fire(signal, self._of_level(said, signal))]
            case "compacted":
                cancel = Cancel(self.watched.id, MAIN, said.cycle)
                text = compacted_text(self.watched.id, self.watched.project)
                return [cancel, Fire(signal, self._to_parent(text, signal)), *self._thrash(signal)]
            case _:
                return [Fire(signal)]

    def _thrash(self, signal: SignalRow) -> list[Write]:
        if not thrashes([*self.compactions, self.at], self.at):
            return []
        return [Fire(msgspec.structs.replace(signal, kind="thrash"))]

    def _of_level(self, said: Said, signal: SignalRow) -> tuple[Message, ...]:
        levels = self.rules.levels_of(self.watched)
        last = said.level == levels[-1]
        own = Message(
            id=key(self.watched.id, MAIN, str(said.cycle), f"{said.level:g}"),
            session=self.watched.id,
            text=level_text(self.reading, said.level, levels, self.rules.neutral),
            at=self.at,
            urgency="urgent" if last else "sequential",
            thread=MAIN,
            cycle=said.cycle,
            level=said.level,
            expires=self.at + LIFETIME,
        )
        text = parent_text(self.watched.id, self.watched.project, self.reading)
        return (own, *(self._to_parent(text, signal) if last else ()))

    def _to_parent(self, text: str, signal: SignalRow) -> tuple[Message, ...]:
        parent = self.watched.parent
        if parent is None or parent == self.watched.id:
            return ()
        id = key(parent, self.watched.id, signal.kind, str(signal.cycle), str(signal.level))
        expires = self.at + LIFETIME
        return (Message(id, parent, text, self.at, sender=self.watched.id, expires=expires),)
