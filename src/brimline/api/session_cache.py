"""Session views as JSON, encoded once for all clients, and their changes."""

import asyncio
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Sequence, Set
from heapq import heapify, heappop, heappush, nsmallest
from typing import TypeAlias

import msgspec

from brimline.api.request_limits import TimeSlice, Turns
from brimline.api.session_change import find_change
from brimline.api.views import SessionRows, Views
from brimline.store.base import Store

PIECE_BYTES = 64 << 10  # of a long response; other work runs between two pieces
MAX_OLD_EXPIRIES = 1_000  # more than sessions
RECENT_S = 24 * 3_600.0  # a stream begins with the sessions seen in this time


class EncodedSession(msgspec.Struct, frozen=True, gc=False):
    """A session's view as JSON; `mark` is that of its last change, `rank` is the view's."""

    id: str
    mark: int
    seen_at: float
    rank: tuple[float, ...]
    json: bytes
    expires_at: float | None
    known_calls: int | None


# Where a session is in a list: the time at which it was seen, negated, or its rank; and its id.
Place: TypeAlias = tuple[tuple[float, ...], str]


class Frame(msgspec.Struct, frozen=True, gc=False):
    """Some events of the stream, in the order of their marks; `mark` is the last."""

    mark: int
    data: bytes


class SessionCache:
    """The encoded views; a view is encoded again only after its session changed.

    `encoded` counts how often that happened. `publish` receives what changed. With `recent_only`
    sessions are dropped that were not seen for RECENT_S: a fleet has too many.
    """

    def __init__(
        self,
        store: Store,
        views: Views,
        clock: Callable[[], float] = time.time,
        recent_only: bool = False,
    ) -> None:
        self.recent_only = recent_only
        self._store = store
        self._views = views
        self._clock = clock
        self._sessions: dict[str, EncodedSession] = {}  # in the order of their marks
        self._expiries: list[tuple[float, str]] = []  # a heap; some are out of date
        self._sorted: list[EncodedSession] = []  # by time; empty until it is asked for
        self.mark = 0  # of the last change that is in the cache
        self._lock = asyncio.Lock()
        self._asked = self._fresh = 0
        self.turns = Turns()
        self.publish: Callable[[Frame], None] = lambda frame: None
        self.encoded = 0

    async def refresh(self) -> None:
        """Bring the sessions up to date, with all that was written before this call.

        Callers that wait at the same time share one pass.
        """
        self._asked += 1
        asked = self._asked
        async with self._lock:
            if self._fresh >= asked:
                return
            started = self._asked
            seen_since = self._clock() - RECENT_S if self.recent_only else 0.0
            marks = await self._store.changes(0, seen_since)
            await self._encode(await self._outdated(marks))
            if len(self._sessions) > len(marks):
                for id in self._sessions.keys() - {id for _, id in marks}:
                    del self._sessions[id]
                self._sorted = []
            self._fresh = started

    async def update(self) -> None:
        """Bring the sessions up to date that changed since the last time, or by the time alone."""
        async with self._lock:
            changed = await self._store.changes(self.mark)
            expired = self._take_expired({id for _, id in changed})
            try:
                await self._encode([*expired, *changed], background=True)
            except BaseException:  # what was not encoded expires again
                self._rebuild_expiries()
                raise

    def _take_expired(self, changed: Set[str]) -> list[tuple[int, str]]:
        """Return the sessions whose views have expired, and which have not changed otherwise."""
        now, expired = self._clock(), dict[str, int]()
        while self._expiries and self._expiries[0][0] <= now:
            at, id = heappop(self._expiries)
            session = self._sessions.get(id)
            if session is not None and session.expires_at == at and id not in changed:
                expired[id] = session.mark
        return [(mark, id) for id, mark in expired.items()]

    def get(self, id: str) -> EncodedSession | None:
        return self._sessions.get(id)

    def changed_after(self, mark: int, seen_since: float = 0.0) -> list[tuple[int, str]]:
        """The sessions that changed after a mark, each with its mark, in that order."""
        changed: list[tuple[int, str]] = []
        for session in reversed(self._sessions.values()):
            if session.mark <= mark:
                break
            if session.seen_at >= seen_since:
                changed.append((session.mark, session.id))
        return changed[::-1]

    def seen_since(self, at: float, before: Place | None = None) -> list[EncodedSession]:
        """The sessions that were seen since a time, the last seen first, or those after a place."""
        if not self._sorted:
            self._sorted = sorted(self._sessions.values(), key=place_of)
        first = bisect_right(self._sorted, before, key=place_of) if before is not None else 0
        return self._sorted[first : bisect_right(self._sorted, -at, key=_age)]

    def most_urgent(
        self, most: int, at: float, before: Place | None = None
    ) -> list[EncodedSession]:
        """At most so many sessions that were seen since a time, by rank, or those after a place."""
        after = (
            each
            for each in self._sessions.values()
            if each.seen_at >= at and (before is None or place_by_need(each) > before)
        )
        return nsmallest(most, after, key=place_by_need)

    async def _outdated(self, marks: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
        now, time_slice = self._clock(), TimeSlice()
        outdated: list[tuple[int, str]] = []
        for mark, id in marks:
            if self._is_outdated(mark, self._sessions.get(id), now):
                outdated.append((mark, id))
            await time_slice.pause_if_over()
        return outdated

    def _is_outdated(self, mark: int, session: EncodedSession | None, now: float) -> bool:
        if session is None or session.mark != mark:
            return True
        if session.expires_at is not None and session.expires_at <= now:
            return True
        known_calls = self._views.known_calls(session.id)
        return known_calls is not None and known_calls != session.known_calls

    async def _encode(self, marks: Sequence[tuple[int, str]], background: bool = False) -> None:
        """Encode these sessions as they are now, and publish what changed.

        If this is cancelled, what was encoded until then is published: it is not encoded again.
        """
        if not marks:
            return
        mark_of = {id: mark for mark, id in marks}
        time_slice, mark, events = TimeSlice(background), 0, bytearray()
        try:
            async for rows in self._views.read_rows(list(mark_of)):
                mark = mark_of[rows.session.id]
                events += self._encode_session(rows, mark)
                self.mark = max(self.mark, mark)
                if len(events) >= PIECE_BYTES:
                    self.publish(Frame(mark, bytes(events)))
                    events.clear()
                await time_slice.pause_if_over()
            self.mark = max(self.mark, marks[-1][0])
        finally:
            if events:
                self.publish(Frame(mark, bytes(events)))

    def _encode_session(self, rows: SessionRows, mark: int) -> bytes:
        """Encode a session; return its event for the stream, empty if nothing changed."""
        id = rows.session.id
        view = self._views.build(rows)
        encoded = EncodedSession(
            id=id,
            mark=mark,
            seen_at=rows.session.seen_at,
            rank=tuple(view.rank),
            json=msgspec.json.encode(view),
            expires_at=rows.expires_at(self._clock()),
            known_calls=self._views.known_calls(id),
        )
        self.encoded += 1
        before = self._sessions.get(id)
        if before is not None and before.mark != mark:
            del self._sessions[id]  # it moves to the end: the order is that of marks
        self._sessions[id] = encoded
        if encoded.expires_at is not None:
            self._note_expiry(id, encoded.expires_at)
        self._sorted = []
        return self._event(before, encoded)

    def _note_expiry(self, id: str, at: float) -> None:
        """Add to the heap; it is built again when most of it is out of date."""
        heappush(self._expiries, (at, id))
        if len(self._expiries) > 2 * len(self._sessions) + MAX_OLD_EXPIRIES:
            self._rebuild_expiries()

    def _rebuild_expiries(self) -> None:
        every = self._sessions.values()
        self._expiries = [(s.expires_at, s.id) for s in every if s.expires_at is not None]
        heapify(self._expiries)

    def _event(self, before: EncodedSession | None, after: EncodedSession) -> bytes:
        """Return a change if every viewer has the view before it, else the whole view."""
        if before is None or before.seen_at < self._clock() - RECENT_S:
            return session_event(after.mark, after.json)
        change = find_change(msgspec.json.decode(before.json), msgspec.json.decode(after.json))
        if change is None:
            return b""
        return b"id: %d\nevent: change\ndata: %s\n\n" % (after.mark, msgspec.json.encode(change))


def place_of(session: EncodedSession) -> Place:
    return (-session.seen_at,), session.id


def place_by_need(session: EncodedSession) -> Place:
    return session.rank, session.id


def _age(session: EncodedSession) -> float:
    return -session.seen_at


def session_event(mark: int, view: bytes) -> bytes:
    """A whole view as an event of the stream."""
    return b"id: %d\nevent: session\ndata: %s\n\n" % (mark, view)


async def in_pieces(parts: Iterable[bytes], turns: Turns) -> AsyncIterator[bytes]:
    """Join parts to pieces of about PIECE_BYTES, each in a turn of its own."""
    await turns.take()
    piece = bytearray()
    for part in parts:
        piece += part
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
            await turns.take()
    if piece:
        yield bytes(piece)
