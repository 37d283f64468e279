"""Sessions for which nothing waits, as far as this process knows without asking the file."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import NamedTuple

from brimline.store.base import MarkMessage, MoveMessage, QueueMessage, RecordSignal, Write

NOTICED = 5.0
"""What another process queued is noticed within so many seconds: so long the file is not asked."""

QUEUING = frozenset({QueueMessage, RecordSignal, MarkMessage, MoveMessage})
"""Writes by which a message may come to wait."""

MOST = 4_096
"""So many sessions, at most, are remembered."""


class Era(NamedTuple):
    """What is read in one era and learned in another is no use: a message may have come."""

    number: int
    version: int | None


class Quiet:
    """Learns from what is read, and forgets with what is written.

    `version` is the file's, which changes with what any other connection writes; None: unknown.
    """

    def __init__(
        self, version: Callable[[], int | None], clock: Callable[[], float] = monotonic
    ) -> None:
        self._version = version
        self._clock = clock
        self._until: dict[str, float] = {}
        self._versions: dict[str, int | None] = {}
        self._number = 0

    def era(self) -> Era:
        """The present one."""
        return Era(self._number, self._version())

    def knows(self, session: str) -> bool:
        """Whether nothing waits for a session."""
        until = self._until.get(session)
        if until is None:
            return False
        now = self._clock()
        return now < until or self._goes_on(session, now)

    def _goes_on(self, session: str, now: float) -> bool:
        """Whether nobody else has written since it was learned; then it holds for another while."""
        version = self._versions[session]
        if version is None or version != self._version():
            return False
        self._until[session] = now + NOTICED
        return True

    def learn(self, session: str, era: Era) -> None:
        """Nothing waited for a session when it was read in an era."""
        if era.number == self._number:
            if len(self._until) >= MOST:
                self._clear()
            self._until[session] = self._clock() + NOTICED
            self._versions[session] = era.version

    def forget(self) -> None:
        """Know nothing any more: a message may be queued."""
        self._clear()
        self._number += 1

    def _clear(self) -> None:
        self._until.clear()
        self._versions.clear()


def may_queue(writes: Sequence[Write]) -> bool:
    """Whether some of these may queue a message."""
    return any(_queues(write) for write in writes if type(write) in QUEUING)


def _queues(write: Write) -> bool:
    match write:
        case QueueMessage() | MoveMessage():
            return True
        case RecordSignal(messages=messages):
            return bool(messages)
        case MarkMessage(to=to):
            return to == "queued"
        case _:
            return False
