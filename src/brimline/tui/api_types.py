"""The API's answers as the terminal decodes them: missing fields are None, new ones are ignored.

The daemon may be older or newer than the terminal. So each item is decoded on its own: one that
cannot be decoded is counted, and the others are shown. The views of `api/views.py` cannot stand in
for these: there a missing field is an error, and without a daemon the transcripts do not say how
many calls a thread has made, or in which cycle it is. A test compares these types with the OpenAPI
document.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from brimline.api.session_change import TrendChange, apply_change
from brimline.context.events import MAIN
from brimline.context.inbox import Message
from brimline.context.policy.levels import Fullness
from brimline.context.usage import percent_raw
from brimline.errors import MalformedJson
from brimline.files.foreign_json import JsonDecoder, decode_items, decode_json
from brimline.store.rows import CallRow, CompactionRow, SessionRow, SignalRow

UNRANKED = (1.0, 0.0, 0.0)


class WatchedThread(msgspec.Struct, frozen=True):
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
    title: str | None = None


class WatchedHandoff(msgspec.Struct, frozen=True):
    """The API's HandoffStatus; `state` is none, fresh, old or draft."""

    state: str
    at: float | None = None
    path: str | None = None
    calls_since: int | None = None


class WatchedNeed(msgspec.Struct, frozen=True):
    """The API's Need."""

    text: str


class WatchedEnd(msgspec.Struct, frozen=True):
    """The API's End."""

    kind: str
    text: str
    at: float | None = None
    is_urgent: bool = False


class WatchedSession(msgspec.Struct, frozen=True):
    """A session with its threads, main first; `levels` and `limit_at` are percent of its window.

    The list is sorted by `rank`; an older daemon does not send it.
    """

    session: SessionRow
    threads: tuple[WatchedThread, ...] = ()
    levels: tuple[float, ...] = ()
    limit_at: float | None = None
    trend: tuple[int, ...] = ()
    handoff: WatchedHandoff | None = None
    unread: int | None = None
    calls_left: float | None = None
    calls_left_range: tuple[float, ...] | None = None
    cost: float | None = None
    need: WatchedNeed | None = None
    ends: tuple[WatchedEnd, ...] = ()
    rank: tuple[float, ...] = UNRANKED

    @property
    def key(self) -> str:
        """A unique key: two agents may use the same session id."""
        return f"{self.session.agent}/{self.session.id}"

    @property
    def main(self) -> WatchedThread | None:
        return next((thread for thread in self.threads if thread.thread == MAIN), None)

    @property
    def subagents(self) -> tuple[WatchedThread, ...]:
        """The other threads, latest first."""
        return tuple(thread for thread in self.threads if thread.thread != MAIN)

    def limit_percent(self, thread: WatchedThread) -> float | None:
        """The limit of a thread in percent of its window."""
        if thread.thread == MAIN and self.limit_at is not None:
            return self.limit_at
        return percent_raw(thread.limit, thread.window)


class HandoffEvent(msgspec.Struct, frozen=True):
    """The API's HandoffHead: a handoff document without its text."""

    at: float
    path: str
    draft: bool = False


class WatchedTimeline(msgspec.Struct, frozen=True):
    """What happened in a session; `unreadable` counts the items that could not be decoded.

    `messages` is None without a daemon. `cost` is in USD; None if no price is known.
    """

    calls: tuple[CallRow, ...] = ()
    compactions: tuple[CompactionRow, ...] = ()
    signals: tuple[SignalRow, ...] = ()
    messages: tuple[Message, ...] | None = None
    handoffs: tuple[HandoffEvent, ...] = ()
    unreadable: int = 0
    cost: float | None = None


TIMELINE_ITEMS: dict[str, type[msgspec.Struct]] = {
    "calls": CallRow,
    "compactions": CompactionRow,
    "signals": SignalRow,
    "messages": Message,
    "handoffs": HandoffEvent,
}


class SessionDetail(msgspec.Struct, frozen=True):
    """A session and its timeline; `reason` says why the timeline could not be loaded."""

    view: WatchedSession
    timeline: WatchedTimeline = WatchedTimeline()
    reason: str | None = None


class _ChangeShape(msgspec.Struct, frozen=True):
    """What `apply_change` expects of a change; the changed view is checked when it is decoded."""

    id: str
    session: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    threads: dict[str, dict[str, Any]] | list[Any] | msgspec.UnsetType = msgspec.UNSET
    trend: TrendChange | msgspec.UnsetType = msgspec.UNSET


def decode_view(data: bytes) -> WatchedSession | None:
    return JsonDecoder(WatchedSession).decode_or_none(data)


def decode_views(data: bytes) -> list[WatchedSession]:
    """All sessions that can be decoded; raises MalformedJson if the data is not a list."""
    return decode_items(decode_json(data, list[msgspec.Raw]), WatchedSession)


def decode_change(data: bytes, views: Mapping[str, WatchedSession]) -> WatchedSession | None:
    """The session after a change, by the views before it; None if it cannot be applied."""
    try:
        before = views.get(decode_json(data, _ChangeShape).id)
    except MalformedJson:
        return None
    if before is None:
        return None
    after = apply_change(msgspec.to_builtins(before), decode_json(data, dict[str, Any]))
    return decode_view(msgspec.json.encode(after))


def decode_timeline(data: bytes, messages: bytes) -> WatchedTimeline:
    """A timeline and its messages; raises MalformedJson for other data."""
    served = decode_json(data, dict[str, msgspec.Raw]) | {"messages": msgspec.Raw(messages)}
    cost = decode_json(served.get("cost", b"null"), float | None)
    lists: dict[str, tuple[Any, ...]] = {}
    unreadable = 0
    for name, kind in TIMELINE_ITEMS.items():
        items = decode_json(served.get(name, b"[]"), list[msgspec.Raw])
        lists[name] = tuple(decode_items(items, kind))
        unreadable += len(items) - len(lists[name])
    return WatchedTimeline(**lists, unreadable=unreadable, cost=cost)
