"""The changes that the server has not acknowledged, in order, in batches of bounded size.

The local store is the queue. Its cursor of a server is the mark up to which the server has every
change. It advances when a round has sent all sessions that changed before the round began: a
session that changes again gets a higher mark, so that no mark in between can stand for "all before
it". What is acknowledged in a round that fails is remembered until the process ends; after that it
is sent again, without effect at the server.

Each batch has a stamp, a number that grows, and the server replies with the last one that it had.
If that is one from before, the server has lost what it acknowledged, as after the restore of a
backup: everything is sent again.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from msgspec.structs import replace

from brimline.agents import agent_names, capabilities_of
from brimline.daemon.uplink.privacy import (
    describe_calls,
    describe_handoff,
    describe_session,
    describe_signal,
    describe_threads,
)
from brimline.daemon.uplink.protocol import UplinkHandoff, UplinkSession, UplinkSignal
from brimline.daemon.uplink.server_messages import find_delivered, server_id
from brimline.files.bounded_dict import BoundedDict
from brimline.monitor.snapshot import TELEMETRY
from brimline.settings import UplinkSettings, seconds
from brimline.store.base import PutCursor, Store
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, ThreadRow

# By then, a session of telemetry whose transcript is on this machine has its calls from there.
TELEMETRY_HOLD_S = 60.0
MAX_SESSIONS = 1_000  # whose acknowledged rows are remembered

SentRow: TypeAlias = ThreadRow | CallRow | CompactionRow | UplinkSignal | UplinkHandoff


class MarkedStore(Store, Protocol):
    """A store that knows which calls changed after a mark."""

    async def calls_after(self, session: str, mark: int) -> list[CallRow]: ...

    async def handoff_heads(self, session: str) -> list[HandoffRow]: ...


class SessionPart(NamedTuple):
    """Rows of a session for one batch; `is_last` if the session has no more up to its mark.

    `current` is what the server has after the last part, except calls: the mark stands for those.
    """

    session: UplinkSession
    mark: int
    rows: Sequence[SentRow]
    delivered: Sequence[str]
    current: frozenset[SentRow | str]
    is_last: bool = True

    @property
    def outgoing(self) -> UplinkSession:
        """The session with these rows."""
        return replace(
            self.session,
            threads=[row for row in self.rows if isinstance(row, ThreadRow)],
            calls=[row for row in self.rows if isinstance(row, CallRow)],
            compactions=[row for row in self.rows if isinstance(row, CompactionRow)],
            signals=[row for row in self.rows if isinstance(row, UplinkSignal)],
            handoffs=[row for row in self.rows if isinstance(row, UplinkHandoff)],
        )


class Outbox:
    """The changes that one server does not have.

    To send them: `begin_round`, then `next_batch` and `acknowledge` until it is empty, `end_round`.
    `stamp` is that of the last batch that the server stored.
    """

    def __init__(self, store: MarkedStore, settings: UplinkSettings, url: str) -> None:
        self._store, self._settings, self._url = store, settings, url
        self._history_s = seconds(settings.history, "uplink.history")
        self.stamp = self._start = 0
        self._base = self._last = 0
        self._marks: dict[str, int] = {}  # up to which sessions are acknowledged after the base
        self._sent = BoundedDict[str, frozenset[SentRow | str]](MAX_SESSIONS)
        self._waiting: deque[tuple[int, str]] = deque()
        self._rest: SessionPart | None = None

    async def begin_round(self) -> int:
        """Begin with the sessions that changed; return how many there are."""
        self._rest = None
        self._start = await self._store.cursor(f"uplink start {self._url}")
        self._base = await self._store.cursor(self._cursor)
        self.stamp = max(self.stamp, await self._store.cursor(f"{self._cursor} stamp"))
        changes = await self._store.changes(self._base)
        self._last = changes[-1][0] if changes else self._base
        self._waiting = deque(
            (mark, id) for mark, id in changes if self._marks.get(id, self._base) < mark
        )
        return len(self._waiting)

    async def next_batch(self, max_rows: int, now: float) -> list[SessionPart]:
        """Return the next parts of sessions, with at most `max_rows` rows; empty at the end."""
        parts: list[SessionPart] = []
        room = max_rows
        while room > 0 and (rest := self._rest or await self._open_next(now)) is not None:
            is_last = len(rest.rows) <= room
            parts.append(rest._replace(rows=rest.rows[:room], is_last=is_last))
            self._rest = None if is_last else rest._replace(rows=rest.rows[room:], delivered=())
            room -= max(1, len(parts[-1].rows))
        return parts

    @property
    def _cursor(self) -> str:
        """The name of the cursor; a cursor never goes back, so that starting over takes another."""
        return f"uplink {self._url} {self._start}" if self._start else f"uplink {self._url}"

    def next_stamp(self, now: float) -> int:
        return max(self.stamp + 1, int(1_000 * now))

    async def start_over(self, stamp: int, now: float) -> None:
        """Forget what the server has: it lost some of it, and `stamp` is its last."""
        await self._store.write([PutCursor(f"uplink start {self._url}", self.next_stamp(now))])
        self._marks.clear()
        self._sent.clear()
        self.stamp = stamp

    def acknowledge(self, parts: Sequence[SessionPart], stamp: int) -> None:
        """Remember what the server has."""
        if parts:
            self.stamp = stamp
        for part in parts:
            id = part.session.id
            if part.is_last:
                self._marks[id], self._sent[id] = part.mark, part.current
            else:
                before = self._sent.get(id, frozenset())
                self._sent[id] = before.union(part.rows, part.delivered)

    def skip(self, part: SessionPart) -> None:
        """Send nothing more of a session that the server refuses until it changes again."""
        self._marks[part.session.id] = part.mark
        if self._rest is not None and self._rest.session.id == part.session.id:
            self._rest = None

    async def end_round(self) -> None:
        """Store that the server has all changes from before the round."""
        if self._last > self._base:
            stamp = PutCursor(f"{self._cursor} stamp", self.stamp)
            await self._store.write([PutCursor(self._cursor, self._last), stamp])
        self._marks = {id: mark for id, mark in self._marks.items() if mark > self._last}

    async def _open_next(self, now: float) -> SessionPart | None:
        while self._waiting:
            mark, id = self._waiting.popleft()
            row = await self._store.session(id)
            if row is None or row.seen_at < now - self._history_s:
                continue
            if not capabilities_of(row.agent).session_ids_are_unique:
                continue  # at the server it would be one with another machine's
            if not await self._may_be_replaced(row, now):
                return await self._open(row, mark)
            self._last = min(self._last, mark - 1)  # it is looked at again in the next round
        return None

    async def _may_be_replaced(self, row: SessionRow, now: float) -> bool:
        """Return whether a transcript may still take the place of a session's telemetry.

        Its calls have other ids there: at the server, which has both, they would count twice.
        """
        if row.agent not in agent_names():
            return False
        threads = await self._store.threads(row.id)
        if not any(each.source == TELEMETRY for each in threads):
            return False
        calls = await self._store.calls(row.id)
        return any(each.at is not None and each.at > now - TELEMETRY_HOLD_S for each in calls[:1])

    async def _open(self, row: SessionRow, mark: int) -> SessionPart:
        """Return all rows of a session that the server does not have."""
        id, store = row.id, self._store
        # Without a mark also the calls of a file from before calls had marks.
        after = self._marks.get(id, self._base or -1)
        rows: list[SentRow] = [
            *describe_threads(await store.threads(id), row, self._settings),
            *await store.compactions(id),
            *map(describe_signal, await store.signals(id)),
            *(describe_handoff(each, server_id(each.id)) for each in await store.handoff_heads(id)),
        ]
        delivered = find_delivered(await store.messages(id))
        sent, current = self._sent.get(id, frozenset()), frozenset([*rows, *delivered])
        rows += describe_calls(await store.calls_after(id, after), row, self._settings)
        return SessionPart(
            describe_session(row, self._settings),
            mark,
            [each for each in rows if each not in sent],
            [each for each in delivered if each not in sent],
            current,
        )
