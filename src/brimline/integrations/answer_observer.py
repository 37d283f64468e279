"""Observe the answers that a framework reports: what cannot be read is logged, never raised."""

import logging
from collections.abc import Iterator

from brimline.context.events import MAIN
from brimline.errors import BrimlineError
from brimline.sdk import Tracker

LOGGER = logging.getLogger("brimline.integrations")


class AbortedStream:
    """A stream that was left early; its items are already added up to one."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[object]:
        yield self._answer


class AnswerObserver:
    """Passes answers to a tracker; an exception of a level's listener is raised as in `observe`."""

    def __init__(self, tracker: Tracker, thread: str = MAIN) -> None:
        self._tracker = tracker
        self._thread = thread
        self._reasons: set[str] = set()

    def observe(self, answer: object, thread: str | None = None) -> None:
        """Observe a whole answer."""
        try:
            self._tracker.observe(answer, thread or self._thread)
        except BrimlineError as error:
            self.warn_once(type(error).__name__, str(error))

    def observe_aborted(self, answer: object) -> None:
        """Observe what came of an answer, and end its call: no more of it will come."""
        for _ in self._tracker.track(AbortedStream(answer), self._thread):
            pass

    def warn_once(self, reason: str, text: str) -> None:
        """Log why a call is not measured, once for each reason."""
        if reason not in self._reasons:
            self._reasons.add(reason)
            LOGGER.warning("a model call is not measured: %s", text)
