"""The sessions that a monitor has in memory, and the lock of each."""

import asyncio
from collections.abc import Callable
from itertools import islice
from weakref import WeakValueDictionary

from brimline.errors import StoreFailed
from brimline.monitor.monitored_session import MonitoredSession
from brimline.monitor.restore import restore_session
from brimline.monitor.user_rules import Rules
from brimline.store.base import ExpectRevision, Store

IDLE_SESSION_S = 24 * 3_600.0  # then a session is released from memory: no page shows its trend

IDLE_SUBAGENT_S = 3_600.0  # then a subagent without a call is released from memory

# Of a shared monitor, whose clients choose the ids: 34 KiB for a session with 128 calls.
MAX_SHARED_SESSIONS = 10_000

MAX_ATTEMPTS = 20  # to change a session that other monitors change at the same time


class SessionTable:
    """Sessions in memory; one that is not is restored from the store.

    If it is `shared`, other monitors write to the same sessions: a copy in memory may be older than
    what is stored.
    """

    def __init__(
        self, store: Store, rules: Rules, shared: bool, max_shared: int = MAX_SHARED_SESSIONS
    ) -> None:
        self._store, self._rules = store, rules
        self.shared, self._max_shared = shared, max_shared
        self._sessions: dict[str, MonitoredSession] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, session: str) -> asyncio.Lock:
        """Return the lock of a session; it exists as long as it is held or waited for."""
        return self._locks.setdefault(session, asyncio.Lock())

    def get(self, session: str) -> MonitoredSession | None:
        """Return a session as it is in memory; None if it is not."""
        return self._sessions.get(session)

    def __getitem__(self, session: str) -> MonitoredSession:
        return self._sessions[session]

    async def load(self, session: str, agent: str) -> MonitoredSession:
        """Return a session as it is in memory, restored from the store if it is not."""
        known = self._sessions.pop(session, None)
        if known is None:
            # The revision is read first: then no row is older than it.
            revision = await self._store.revision(session) if self.shared else None
            restored = await restore_session(self._store, agent, session, self._rules)
            known = MonitoredSession(*restored, revision)
        self._sessions[session] = known  # the last one that was used comes last
        if self.shared:
            self._release_excess()
        return known

    async def load_stored(self, session: str, agent: str) -> MonitoredSession:
        """Return a session as it is stored, even if another monitor has changed it."""
        known = self._sessions.get(session)
        if (
            known is not None
            and self.shared
            and known.revision != await self._store.revision(session)
        ):
            self.drop(session)
        return await self.load(session, agent)

    async def invalidate(self, session: str) -> None:
        """Let every monitor restore a session: more of it than its rows has changed."""
        self.drop(session)
        for _ in range(MAX_ATTEMPTS):
            revision = await self._store.revision(session)
            if (await self._store.write([ExpectRevision(session, revision)]))[0]:
                return
        raise contended(session)

    def _release_excess(self) -> None:
        """Release the sessions that were not used for the longest time if there are too many."""
        excess = max(0, len(self._sessions) - self._max_shared)
        for id in list(islice(self._sessions, excess)):
            if id not in self._locks:
                del self._sessions[id]

    def drop(self, session: str) -> None:
        """Drop the copy of a session; it is restored when it is loaded again."""
        self._sessions.pop(session, None)

    def drop_older(self, before: float) -> list[str]:
        """Drop the sessions that were last seen before a time, and return them."""
        old = [id for id, each in self._sessions.items() if each.stored.was_seen_before(before)]
        for id in old:
            del self._sessions[id]
        return old

    def release_idle(self, now: float, is_busy: Callable[[str], bool]) -> list[str]:
        """Release sessions and subagents that were idle for long; return these sessions.

        If they go on, they are restored from the store and the files, as after a restart.
        """
        released: list[str] = []
        for id, session in list(self._sessions.items()):
            if id in self._locks or is_busy(id):
                continue
            if session.is_idle(now - IDLE_SESSION_S):
                del self._sessions[id]
                released.append(id)
            else:
                session.release_idle_threads(now - IDLE_SUBAGENT_S)
        return released


def contended(session: str) -> StoreFailed:
    """Return the error if other monitors change a session all the time."""
    reason = f"other replicas changed it {MAX_ATTEMPTS} times during one request"
    return StoreFailed(f"session {session}", reason, "Send the request again.")
