"""The session of a program in the daemon: its events go there, messages come from there.

Events wait in a bounded queue, which one background thread empties.
"""

import atexit
import logging
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import finalize

import msgspec

from brimline.agents import agent_names
from brimline.api.client.request import request, session_path
from brimline.api.schemas import MAX_AGENT_CHARS, MAX_EVENTS, MAX_ID_CHARS, NewEvent, NewEvents
from brimline.context.events import AnyEvent, Call, Ended, SessionSeen
from brimline.context.inbox import Message
from brimline.errors import InvalidPolicy, InvalidRequest, NotRunning
from brimline.files.bounded_dict import BoundedDict
from brimline.settings import state_dir

MESSAGES_WAIT_S = 0.5  # for the daemon's answer; it takes a few milliseconds
CLOSE_WAIT_S = 1.0
MAX_DELIVERED = 1_000  # message ids that are remembered

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


class _SessionOrigin(msgspec.Struct, frozen=True):
    """What is sent with every event of a session."""

    session: str
    agent: str
    project: str | None
    parent: str | None

    def row(self, event: AnyEvent) -> NewEvent:
        """An event with its time, under an id of its own."""
        at = time.time() if event.at is None else event.at
        return NewEvent(
            id=uuid.uuid4().hex,
            session=self.session,
            agent=self.agent,
            event=msgspec.structs.replace(event, at=at),
            project=self.project,
            parent=self.parent,
        )


class DaemonSession:
    """A program's session in Brimline's daemon: `Tracker(report_to=DaemonSession("my-agent"))`.

    The daemon of this user is found as the commands find it. Without one, events wait in a bounded
    queue until there is one. Use one session for one tracker, and the same `id` to continue it in
    another process. It ends with `close`, with the program, or when nothing refers to it any more.
    """

    def __init__(
        self,
        agent: str,
        *,
        id: str | None = None,
        title: str | None = None,
        project: str | None = None,
        parent: str | None = None,
    ) -> None:
        self.agent = _check_name("agent", agent, MAX_AGENT_CHARS)
        self.id = _check_name("id", id or str(uuid.uuid4()), MAX_ID_CHARS)
        project, parent = project or _current_folder(), parent or os.environ.get("BRIMLINE_PARENT")
        self._origin = _SessionOrigin(self.id, self.agent, project, parent)
        self._news: tuple[AnyEvent, ...] = (SessionSeen(title=title),) if title else ()
        state = state_dir(os.environ, _home_folder())
        self._outbox = _outboxes.setdefault(state, EventOutbox(state))
        self._delivered = BoundedDict[str, None](MAX_DELIVERED)
        finalize(self, _end, self._origin).atexit = False  # `_end_all` is for that

    def receive(self, events: Sequence[AnyEvent]) -> None:
        """Queue events for the daemon; never waits and never raises."""
        if not events:
            return
        _open[self._origin] = self._outbox
        news, self._news = self._news, ()
        for event in (*news, *events):
            if isinstance(event, SessionSeen):  # an SDK's own names; the program gave others
                event = msgspec.structs.replace(event, session=None, agent=None)
            self._outbox.add(self._origin.row(event))

    def messages(self) -> "PendingMessages":
        """Take the messages for this session that are pending: `for ... in`, or `await` for a list.

        A message counts as delivered when the loop asks for the next one or ends; if it does not,
        the message comes again after 30 seconds. Awaited messages are delivered together. Waits for
        the daemon for a moment; without one there are no messages.
        """
        return PendingMessages(self._deliver_each(), self._deliver_all)

    def _deliver_each(self) -> Iterator[Message]:
        for message in self._take():
            if message.id not in self._delivered:
                yield message
            self._mark_delivered([message])

    async def _deliver_all(self) -> list[Message]:
        import asyncio  # takes 30 ms, and most programs iterate

        # In two steps: if the task is cancelled while it waits, the messages come again.
        taken = await asyncio.to_thread(self._take)
        messages = [message for message in taken if message.id not in self._delivered]
        await asyncio.to_thread(self._mark_delivered, taken)
        return messages

    def _take(self) -> list[Message]:
        if not self._outbox.flush(MESSAGES_WAIT_S):
            return []
        return msgspec.convert(self._ask("take") or [], list[Message])

    def _mark_delivered(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._delivered[message.id] = None
        if messages:
            self._ask("delivered", {"ids": [message.id for message in messages]})

    def close(self) -> None:
        """Report that the session has ended, and wait a moment until everything is sent."""
        _end(self._origin)
        self._outbox.flush(CLOSE_WAIT_S)

    def _ask(self, what: str, body: object = None) -> object:
        """Send a request about messages; None if the daemon does not answer or refuses it."""
        path = session_path(self.id, f"/messages/{what}")
        try:
            return request(self._outbox.state, "POST", path, body, MESSAGES_WAIT_S)
        except (NotRunning, InvalidRequest):
            return None


class PendingMessages(Iterator[Message]):
    """The pending messages of a session: iterated one by one, or awaited as a list."""

    def __init__(
        self, each: Iterator[Message], deliver_all: Callable[[], Awaitable[list[Message]]]
    ) -> None:
        self._each, self._deliver_all = each, deliver_all

    def __next__(self) -> Message:
        return next(self._each)

    def __await__(self) -> Generator[Any, Any, list[Message]]:
        return self._deliver_all().__await__()


_outboxes: dict[Path, EventOutbox] = {}
_open: dict[
    _SessionOrigin, EventOutbox
] = {}  # the sessions that have reported something, and go on


def _check_name(field: str, name: str, longest: int) -> str:
    if not 0 < len(name) <= longest:
        raise InvalidPolicy(field, name, f"1 to {longest} characters")
    if field == "agent" and name in agent_names():
        raise InvalidPolicy(field, name, "a name of your own: the daemon knows this one's client")
    return name


def _home_folder() -> Path:
    with suppress(RuntimeError):  # a user that the system does not know, without HOME
        return Path.home()
    return Path("/")


def _current_folder() -> str | None:
    with suppress(OSError):  # it was removed
        return str(Path.cwd())
    return None


def _end(origin: _SessionOrigin) -> None:
    outbox = _open.pop(origin, None)
    if outbox is not None:
        outbox.add(origin.row(Ended()))


def _end_all() -> None:
    for origin in list(_open):
        _end(origin)
    for outbox in _outboxes.values():
        outbox.flush(CLOSE_WAIT_S)


def _forget_all() -> None:
    """In a forked child: what is open and queued belongs to its parent."""
    _open.clear()
    for outbox in _outboxes.values():
        outbox.forget()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_forget_all)
