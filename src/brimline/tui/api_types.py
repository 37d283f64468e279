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


class ThreadView(msgspec.Struct, frozen=True):
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


class HandoffStatus(msgspec.Struct, frozen=True):
    """How a session stands with its handoff: none, fresh, old or draft."""

    state: str
    at: float | None = None
    path: str | None = None
    calls_since: int | None = None


class SessionView(msgspec.Struct, frozen=True):
    """A session with its threads, its own first; `levels` and `limit_at` are in % of its window."""

    session: SessionRow
    threads: tuple[ThreadView, ...] = ()
    levels: tuple[float, ...] = ()
    limit_at: float | None = None
    trend: tuple[int, ...] = ()
    handoff: HandoffStatus | None = None
    unread: int | None = None
    calls_left: float | None = None

    @property
    def key(self) -> str:
        """What tells it from all others: two agents may have given the same id."""
        return f"{self.session.agent}/{self.session.id}"

    @property
    def main(self) -> ThreadView | None:
        """The session's own thread; None before it is heard of."""
        return next((thread for thread in self.threads if thread.thread == MAIN), None)

    @property
    def subagents(self) -> tuple[ThreadView, ...]:
        """The other threads, the latest first."""
        return tuple(thread for thread in self.threads if thread.thread != MAIN)

    def limit_percent(self, thread: ThreadView) -> float | None:
        """Where a thread's limit lies, in per cent of its window."""
        if thread.thread == MAIN and self.limit_at is not None:
            return self.limit_at
        return percent_raw(thread.limit, thread.window)


class HandoffHead(msgspec.Struct, frozen=True):
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
    handoffs: tuple[HandoffHead, ...] = ()
    unreadable: int = 0


class SessionDetail(msgspec.Struct, frozen=True):
    """A session with all that happened in it; `problem` says why that could not be had."""

    view: SessionView
    timeline: Timeline = Timeline()
    problem: str | None = None


class _RawTimeline(msgspec.Struct, frozen=True):
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


class LiveSessions:
    """The sessions as JSON, so that the stream's changes can be applied to them.

    An event that cannot be read, or changes a session that is not known, is left out.
    """

    def __init__(self) -> None:
        self._encoded: dict[str, bytes] = {}

    def decode_all(self, data: bytes) -> list[SessionView]:
        """The sessions of a list; raises msgspec.DecodeError if it is none."""
        encoded = map(bytes, msgspec.json.decode(data, type=list[msgspec.Raw]))
        taken = [self.decode(each) for each in encoded]
        return [each for each in taken if each is not None]

    def decode(self, data: bytes) -> SessionView | None:
        """A whole view; None if it cannot be read."""
        read = decode_view(data)
        if read is not None:
            self._encoded[read.session.id] = data
        return read

    def apply_change(self, data: bytes) -> SessionView | None:
        """A session after a change; None if it cannot be applied."""
        try:
            before = self._encoded.get(msgspec.json.decode(data, type=_ChangeShape).id)
            if before is None:
                return None
            msgspec.json.decode(before, type=_ViewShape)
        except msgspec.DecodeError:
            return None
        after = apply_change(msgspec.json.decode(before), msgspec.json.decode(data))
        return self.decode(msgspec.json.encode(after))


def decode_view(data: bytes) -> SessionView | None:
    """A session as the stream tells it; None where it cannot be read."""
    return next(iter(_decode_each([msgspec.Raw(data)], SessionView)), None)


def decode_views(data: bytes) -> list[SessionView]:
    """All sessions that can be read; raises msgspec.DecodeError where it is no list."""
    return _decode_each(msgspec.json.decode(data, type=list[msgspec.Raw]), SessionView)


def decode_timeline(data: bytes, messages: bytes) -> Timeline:
    """What happened in a session, with its messages; raises msgspec.DecodeError for other data."""
    raw = msgspec.json.decode(data, type=_RawTimeline)
    raw_messages = msgspec.json.decode(messages, type=list[msgspec.Raw])
    read = tuple(_decode_each(raw_messages, Message))
    made = Timeline(
        tuple(_decode_each(raw.calls, CallRow)),
        tuple(_decode_each(raw.compactions, CompactionRow)),
        tuple(_decode_each(raw.signals, SignalRow)),
        read,
        tuple(_decode_each(raw.handoffs, HandoffHead)),
    )
    came = len(raw_messages) + sum(
        len(getattr(raw, name)) for name in _RawTimeline.__struct_fields__
    )
    taken = len(read) + sum(len(getattr(made, name)) for name in _RawTimeline.__struct_fields__)
    return msgspec.structs.replace(made, unreadable=came - taken)


def _decode_each(items: Iterable[msgspec.Raw], kind: type[ItemT]) -> list[ItemT]:
    decoded: list[ItemT] = []
    for item in items:
        try:
            decoded.append(msgspec.json.decode(item, type=kind))
        except msgspec.DecodeError:
            continue
    return decoded
