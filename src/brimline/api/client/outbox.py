"""Events on their way to the daemon: a bounded queue that one background thread empties."""

import logging
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.api.client.request import request
from brimline.api.schemas import MAX_EVENTS, NewEvent, NewEvents
from brimline.context.events import Call
from brimline.errors import InvalidRequest, NotRunning

LOGGER = logging.getLogger("brimline.daemon_client")

MAX_QUEUED_EVENTS = 10_000  # about 5 MB; of more, the oldest are dropped
SEND_EVERY_S = 0.1  # the copies of a streamed call that come in between are sent as one
RETRY_S = 1.0  # without a daemon; a try takes 0.1 ms


class EventOutbox:
    """Sends events to the daemon of a state folder, in order, and again until it has them.

    `add` never waits and never raises. The daemon counts an event that it gets twice once.
    """

    def __init__(self, state: Path) -> None:
        self.state = state
        self.forget()

    def forget(self) -> None:
        """Drop everything: in a forked child the queue and the thread are those of its parent."""
        self._queue: deque[NewEvent] = deque()
        self._sending: list[NewEvent] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._failures, self._is_urgent = 0, False

    def add(self, row: NewEvent) -> None:
        with self._changed:
            if self._queue and _is_copy(row, self._queue[-1]):
                self._queue.pop()
            self._queue.append(row)
            self._drop_oldest()
            self._start_thread()
            self._changed.notify_all()

    def flush(self, wait_s: float) -> bool:
        """Send now; return whether all is sent before the time is over or an attempt fails."""
        with self._changed:
            failures = self._failures
            self._is_urgent = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_empty or self._failures > failures, wait_s)
            return self._is_empty

    @property
    def _is_empty(self) -> bool:
        return not self._queue and not self._sending

    def _drop_oldest(self) -> None:
        while len(self._queue) > MAX_QUEUED_EVENTS:
            self._queue.popleft()

    def _start_thread(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="brimline-outbox", daemon=True)
            with suppress(RuntimeError):  # no more threads, or the interpreter is exiting
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue)
                count = min(len(self._queue), MAX_EVENTS)
                self._sending = [self._queue.popleft() for _ in range(count)]
                self._is_urgent = False
            is_sent = self._send(self._sending)
            with self._changed:
                if not is_sent:
                    self._queue.extendleft(reversed(self._sending))
                    self._drop_oldest()
                    self._failures += 1
                self._sending = []
                self._changed.notify_all()
                pause_s = SEND_EVERY_S if is_sent else RETRY_S
                self._changed.wait_for(lambda: self._is_urgent, pause_s)

    def _send(self, rows: list[NewEvent]) -> bool:
        """Return False if the events are to be sent again."""
        try:
            request(self.state, "POST", "/v1/events", msgspec.to_builtins(NewEvents(rows)))
        except NotRunning:
            return False
        except InvalidRequest as error:
            if error.is_temporary:
                return False
            LOGGER.warning("the daemon refused %d events, which are lost: %s", len(rows), error)
        return True


def _is_copy(row: NewEvent, before: NewEvent) -> bool:
    """Whether an event is a later copy of the same call: while a reply streams, it has many."""
    new, old = row.event, before.event
    if not isinstance(new, Call) or not isinstance(old, Call) or row.session != before.session:
        return False
    return (new.thread, new.id) == (old.thread, old.id) and new.final >= old.final
