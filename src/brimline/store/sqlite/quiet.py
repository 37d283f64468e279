"""Sessions for which nothing waits, as far as this process knows without asking the file."""

from collections.abc import Callable, Sequence
from time import monotonic

from brimline.store.base import Fire, Mark, Queue, Write

NOTICED = 5.0
"""What another process queued is noticed within so many seconds."""

QUEUING = frozenset({Queue, Fire, Mark})
"""Writes by which a message may come to wait."""

MOST = 4_096
"""So many sessions, at most, are remembered."""


class Quiet:
    """Learns from what is read, and forgets with what is written."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._era = 0

    @property
    def era(self) -> int:
        """What is read in one era and learned in another is no use: a message may have come."""
        return self._era

    def knows(self, session: str) -> bool:
        """Whether nothing waits for a session."""
        until = self._until.get(session)
        return until is not None and self._clock() < until

    def learn(self, session: str, era: int) -> None:
        """Nothing waited for a session when it was read in an era."""
        if era == self._era:
            if len(self._until) >= MOST:
                self._until.clear()
            self._until[session] = self._clock() + NOTICED

    def forget(self) -> None:
        """Know nothing any more: a message may be queued."""
        self._until.clear()
        self._era += 1


def may_queue(writes: Sequence[Write]) -> bool:
    """Whether some of these may queue a message."""
    return any(_queues(write) for write in writes if type(write) in QUEUING)


def _queues(write: Write) -> bool:
    match write:
        case Queue():
            return True
        case Fire(messages=messages):
            return bool(messages)
        case Mark(to=to):
            return to == "queued"
        case _:
            return False
