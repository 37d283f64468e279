"""The API's answers as the terminal decodes them: missing fields are None, new ones are ignored.

The daemon may be older or newer than the terminal. So each item is decoded on its own: one that
cannot be decoded is counted, and the others are shown. A test compares these types with the OpenAPI
document.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from brimline.api.session_change import apply_change
from brimline.context.events import MAIN
from brimline.context.inbox import Message
from brimline.context.policy.levels import Fullness
from brimline.context.usage import percent_raw
from brimline.errors import MalformedJson
from brimline.files.foreign_json import JsonDecoder, decode_json
from brimline.store.rows import CallRow, CompactionRow, SessionRow, SignalRow

ItemT = TypeVar("ItemT")


class ThreadView(msgspec.Struct, frozen=True):
    """The API's ThreadView: the current reading of a thread, taken at `at`. None is unknown.

    `pending` is an estimate. `levels` are percent of its window; the message of `pending_level` was
    not delivered yet.
    """

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
    pending: int | None = None
    levels: tuple[float, ...] = ()
    fullness: Fullness | None = None
    pending_level: float | None = None


class HandoffStatus(msgspec.Struct, frozen=True):
    """The API's HandoffStatus; `state` is none, fresh, old or draft."""

    state: str
    at: float | None = None
    path: str | None = None
    calls_since: int | None = None


class SessionView(msgspec.Struct, frozen=True):
    """A session with its threads, main first; `levels` and `limit_at` are percent of its window."""

    session: SessionRow
    threads: tuple[ThreadView, ...] = ()
    levels: tuple[float, ...] = ()
    limit_at: float | None = None
    trend: tuple[int, ...] = ()
    handoff: HandoffStatus | None = None
    unread: int | None = None
    calls_left: float | None = None
    calls_left_range: tuple[float, ...] | None = None

    @property
    def key(self) -> str:
        """A unique key: two agents may use the same session id."""
        return f"{self.session.agent}/{self.session.id}"

    @property
    def active_at(self) -> float:
        """The time of the last call of any thread; 0 if the session has ended."""
        if self.session.ended_at is not None:
            return 0.0
        return max((thread.at or 0.0 for thread in self.threads), default=0.0) or (
            self.session.seen_at
        )

    @property
    def main(self) -> ThreadView | None:
        return next((thread for thread in self.threads if thread.thread == MAIN), None)

    @property
    def subagents(self) -> tuple[ThreadView, ...]:
        """The other threads, latest first."""
        return tuple(thread for thread in self.threads if thread.thread != MAIN)

    def limit_percent(self, thread: ThreadView) -> float | None:
        """The limit of a thread in percent of its window."""
        if thread.thread == MAIN and self.limit_at is not None:
            return self.limit_at
        return percent_raw(thread.limit, thread.window)


class HandoffHead(msgspec.Struct, frozen=True):
    """The API's HandoffHead: a handoff document without its text."""

    at: float
    path: str
    author: str | None = None
    draft: bool = False


class Timeline(msgspec.Struct, frozen=True):
    """What happened in a session; `unreadable` counts the items that could not be decoded.

    `messages` is None without a daemon. `cost` is in USD; None if no price is known.
    """

    calls: tuple[CallRow, ...] = ()
    compactions: tuple[CompactionRow, ...] = ()
    signals: tuple[SignalRow, ...] = ()
    messages: tuple[Message, ...] | None = None
    handoffs: tuple[HandoffHead, ...] = ()
    unreadable: int = 0
    cost: float | None = None


class SessionDetail(msgspec.Struct, frozen=True):
    """A session and its timeline; `problem` says why the timeline could not be loaded."""

    view: SessionView
    timeline: Timeline = Timeline()
    problem: str | None = None


class Piece(msgspec.Struct, frozen=True):
    """The API's ExplainedPiece: a part of the context."""

    what: str
    tokens: int


class Category(msgspec.Struct, frozen=True):
    """The API's ExplainedCategory: its pieces are the largest first.

    `note` says where its tokens are if the client does not record it.
    """

    name: str
    tokens: int
    pieces: tuple[Piece, ...] = ()
    note: str | None = None


class Finding(msgspec.Struct, frozen=True):
    """The API's Waste: what to do about it; `cost` is in USD."""

    advice: str
    tokens: int
    cost: float | None = None


class FilledThread(msgspec.Struct, frozen=True):
    """The API's ExplainedThread: what fills its context, None if that is unknown."""

    thread: str
    sent: int | None = None
    categories: tuple[Category, ...] = ()
    unexplained: int = 0
    waste: tuple[Finding, ...] = ()
    pending: int = 0


class Explanation(msgspec.Struct, frozen=True):
    """What fills a session's contexts; `problem` says why there are no threads."""

    threads: tuple[FilledThread, ...] = ()
    problem: str | None = None


class _RawTimeline(msgspec.Struct, frozen=True):
    calls: tuple[msgspec.Raw, ...] = ()
    compactions: tuple[msgspec.Raw, ...] = ()
    signals: tuple[msgspec.Raw, ...] = ()
    handoffs: tuple[msgspec.Raw, ...] = ()
    cost: float | None = None


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
    """The JSON of all sessions, to which the stream's changes are applied.

    An event that cannot be decoded, or that changes an unknown session, is ignored.
    """

    def __init__(self) -> None:
        self._encoded: dict[str, bytes] = {}

    def decode_all(self, data: bytes) -> list[SessionView]:
        """The sessions of a JSON list; raises MalformedJson if it is not a list."""
        items = map(bytes, decode_json(data, list[msgspec.Raw]))
        views = map(self.decode, items)
        return [view for view in views if view is not None]

    def decode(self, data: bytes) -> SessionView | None:
        view = decode_view(data)
        if view is not None:
            self._encoded[view.session.id] = data
        return view

    def apply_change(self, data: bytes) -> SessionView | None:
        """The session after a change; None if the change cannot be applied."""
        try:
            before = self._encoded.get(decode_json(data, _ChangeShape).id)
            if before is None:
                return None
            decode_json(before, _ViewShape)
        except MalformedJson:
            return None
        after = apply_change(decode_json(before, dict[str, Any]), decode_json(data, dict[str, Any]))
        return self.decode(msgspec.json.encode(after))


def decode_view(data: bytes) -> SessionView | None:
    return next(iter(_decode_each([msgspec.Raw(data)], SessionView)), None)


def decode_views(data: bytes) -> list[SessionView]:
    """All sessions that can be decoded; raises MalformedJson if the data is not a list."""
    return _decode_each(decode_json(data, list[msgspec.Raw]), SessionView)


def decode_timeline(data: bytes, messages: bytes) -> Timeline:
    """A timeline and its messages; raises MalformedJson for other data."""
    raw = decode_json(data, _RawTimeline)
    raw_messages = decode_json(messages, list[msgspec.Raw])
    decoded = Timeline(
        tuple(_decode_each(raw.calls, CallRow)),
        tuple(_decode_each(raw.compactions, CompactionRow)),
        tuple(_decode_each(raw.signals, SignalRow)),
        tuple(_decode_each(raw_messages, Message)),
        tuple(_decode_each(raw.handoffs, HandoffHead)),
    )
    names = ("calls", "compactions", "signals", "handoffs")
    unreadable = sum(len(getattr(raw, name)) - len(getattr(decoded, name)) for name in names)
    unreadable += len(raw_messages) - len(decoded.messages or ())
    return msgspec.structs.replace(decoded, unreadable=unreadable, cost=raw.cost)


def _decode_each(items: Iterable[msgspec.Raw], kind: type[ItemT]) -> list[ItemT]:
    decoded = map(JsonDecoder(kind).decode_or_none, items)
    return [item for item in decoded if item is not None]
