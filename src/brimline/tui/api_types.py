"""What the daemon tells, as the terminal takes it: what is missing is unknown, what is new is left.

A daemon may be older or newer than the terminal that asks it. So each item is taken by itself: one
that cannot be read is counted, and the others are shown.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from brimline.events import MAIN
from brimline.inbox import Message
from brimline.server.api.session_change import apply_change
from brimline.store.rows import CallRow, CompactionRow, SessionRow, SignalRow
from brimline.usage import percent_raw

ItemT = TypeVar("ItemT")


class Thread(msgspec.Struct, frozen=True):
    """A thread as it is now; `at` is when it was last heard of. What is None is unknown."""

    thread: str
    state: str
    source: str
    at: float | None = None
    sent: int | None = None
    held: int | None = None
    window: int | None = None
    window_why: str | None = None
    limit: int | None = None
    limit_why: str | None = None
    percent: float | None = None
    percent_raw: float | None = None
    percent_of_limit: float | None = None
    peak_sent: int | None = None
    calls: int | None = None
    cycle: int | None = None
    model: str | None = None


class Handoff(msgspec.Struct, frozen=True):
    """How a session stands with its handoff: none, fresh, old or draft."""

    state: str
    at: float | None = None
    path: str | None = None
    calls_since: int | None = None


class View(msgspec.Struct, frozen=True):
    """A session with its threads, its own first; `levels` and `limit_at` are in % of its window."""

    session: SessionRow
    threads: tuple[Thread, ...] = ()
    levels: tuple[float, ...] = ()
    limit_at: float | None = None
    trend: tuple[int, ...] = ()
    handoff: Handoff | None = None
    unread: int | None = None
    calls_left: float | None = None

    @property
    def key(self) -> str:
        """What tells it from all others: two agents may have given the same id."""
        return f"{self.session.agent}/{self.session.id}"

    @property
    def main(self) -> Thread | None:
        """The session's own thread; None before it is heard of."""
        return next((thread for thread in self.threads if thread.thread == MAIN), None)

    @property
    def subagents(self) -> tuple[Thread, ...]:
        """The other threads, the latest first."""
        return tuple(thread for thread in self.threads if thread.thread != MAIN)

    def limit_of(self, thread: Thread) -> float | None:
        """Where a thread's limit lies, in per cent of its window."""
        if thread.thread == MAIN and self.limit_at is not None:
            return self.limit_at
        return percent_raw(thread.limit, thread.window)


class Document(msgspec.Struct, frozen=True):
    """A handoff in the timeline."""

    at: float
    path: str
    author: str | None = None
    draft: bool = False


class Timeline(msgspec.Struct, frozen=True):
    """What happened in a session; `unreadable` counts what could not be taken.

    `messages` None: only a daemon could tell.
    """

    calls: tuple[CallRow, ...] = ()
    compactions: tuple[CompactionRow, ...] = ()
    signals: tuple[SignalRow, ...] = ()
    messages: tuple[Message, ...] | None = None
    handoffs: tuple[Document, ...] = ()
    unreadable: int = 0


class Detail(msgspec.Struct, frozen=True):
    """A session with all that happened in it; `problem` says why that could not be had."""

    view: View
    timeline: Timeline = Timeline()
    problem: str | None = None


class _Told(msgspec.Struct, frozen=True):
    calls: tuple[msgspec.Raw, ...] = ()
    compactions: tuple[msgspec.Raw, ...] = ()
    signals: tuple[msgspec.Raw, ...] = ()
    handoffs: tuple[msgspec.Raw, ...] = ()


class _ThreadName(msgspec.Struct, frozen=True):
    thread: str


class _ViewShape(msgspec.Struct, frozen=True):
    session: dict[str, Any]
    threads: list[_ThreadName]
    trend: list[int]


class _TrendChange(msgspec.Struct, frozen=True):
    keep: int
    add: list[int]


class _ChangeShape(msgspec.Struct, frozen=True):
    id: str
    session: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    threads: dict[str, dict[str, Any]] | list[_ThreadName] | msgspec.UnsetType = msgspec.UNSET
    trend: _TrendChange | msgspec.UnsetType = msgspec.UNSET


class LiveViews:
    """The sessions as JSON, so that the stream's changes can be applied to them.

    An event that cannot be read, or changes a session that is not known, is left out.
    """

    def __init__(self) -> None:
        self._encoded: dict[str, bytes] = {}

    def take_all(self, data: bytes) -> list[View]:
        """The sessions of a list; raises msgspec.DecodeError if it is none."""
        encoded = map(bytes, msgspec.json.decode(data, type=list[msgspec.Raw]))
        taken = [self.take(each) for each in encoded]
        return [each for each in taken if each is not None]

    def take(self, data: bytes) -> View | None:
        """A whole view; None if it cannot be read."""
        read = view(data)
        if read is not None:
            self._encoded[read.session.id] = data
        return read

    def change(self, data: bytes) -> View | None:
        """A session after a change; None if it cannot be applied."""
        try:
            before = self._encoded.get(msgspec.json.decode(data, type=_ChangeShape).id)
            if before is None:
                return None
            msgspec.json.decode(before, type=_ViewShape)
        except msgspec.DecodeError:
            return None
        after = apply_change(msgspec.json.decode(before), msgspec.json.decode(data))
        return self.take(msgspec.json.encode(after))


def view(data: bytes) -> View | None:
    """A session as the stream tells it; None where it cannot be read."""
    return next(iter(_each([msgspec.Raw(data)], View)), None)


def views(data: bytes) -> list[View]:
    """All sessions that can be read; raises msgspec.DecodeError where it is no list."""
    return _each(msgspec.json.decode(data, type=list[msgspec.Raw]), View)


def timeline(data: bytes, messages: bytes) -> Timeline:
    """What happened in a session, with its messages; raises msgspec.DecodeError for other data."""
    told = msgspec.json.decode(data, type=_Told)
    letters = msgspec.json.decode(messages, type=list[msgspec.Raw])
    read = tuple(_each(letters, Message))
    made = Timeline(
        tuple(_each(told.calls, CallRow)),
        tuple(_each(told.compactions, CompactionRow)),
        tuple(_each(told.signals, SignalRow)),
        read,
        tuple(_each(told.handoffs, Document)),
    )
    came = len(letters) + sum(len(getattr(told, name)) for name in _Told.__struct_fields__)
    taken = len(read) + sum(len(getattr(made, name)) for name in _Told.__struct_fields__)
    return msgspec.structs.replace(made, unreadable=came - taken)


def _each(items: Iterable[msgspec.Raw], kind: type[ItemT]) -> list[ItemT]:
    found: list[ItemT] = []
    for item in items:
        try:
            found.append(msgspec.json.decode(item, type=kind))
        except msgspec.DecodeError:
            continue
    return found
