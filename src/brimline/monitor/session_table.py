"""The sessions that a monitor has in memory: their states, what of them is stored, their locks."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from weakref import WeakValueDictionary

from brimline.agents.observations import Observation
from brimline.errors import StoreFailed
from brimline.monitor.fired_signals import SignalHistory
from brimline.monitor.persistence import HOSTNAME, StoredRows
from brimline.monitor.restore import restore_session
from brimline.monitor.session_state import SessionState
from brimline.monitor.snapshot import Snapshot
from brimline.monitor.user_rules import Rules
from brimline.store.base import ExpectRevision, Store, Write

IDLE_SESSION_S = 24 * 3_600.0  # then a session is released from memory: no page shows its trend

IDLE_SUBAGENT_S = 3_600.0  # then a subagent without a call is released from memory

# Of a shared monitor, whose clients choose the ids: 34 KiB for a session with 128 calls.
MAX_SHARED_SESSIONS = 10_000

MAX_ATTEMPTS = 20  # to change a session that other monitors change at the same time


class MonitoredSession:
    """One session: its state, its signals so far, and what of it is stored.

    `handoff_pending`: a document is to be re-injected, with the pins. `pins_pending`: the pins are
    to be injected, as the session is new or was cleared. `is_clean`: all is stored. `revision` is
    the stored one when it was restored or last written, None if no other monitor writes it.
    `is_reachable`: something delivered messages when a level last fired; if not, no message was
    queued. `served_threads` have asked for their messages since.
    """

    def __init__(
        self, state: SessionState, signals: SignalHistory, revision: int | None = None
    ) -> None:
        self.state = state
        self.signals = signals
        self.revision = revision
        # A monitor that shares its store runs on a server: its programs run elsewhere.
        self._host = HOSTNAME if revision is None else None
        self.stored = StoredRows(self._host)
        self.stored.mark_restored(state)
        self.handoff_pending = signals.handoff_pending
        self.pins_pending = state.is_new
        self._saved: Snapshot | None = None
        self.is_clean = False
        self.is_reachable = False
        self.served_threads: set[str] = set()

    async def write(self, store: Store, writes: Sequence[Write]) -> list[bool] | None:
        """Write what was decided by this state; None if another monitor has changed the session.

        Then nothing was written, and the session has to be restored.
        """
        if self.revision is None:
            return await store.write(writes)
        is_current, *effects = await store.write(
            [ExpectRevision(self.state.id, self.revision), *writes]
        )
        if not is_current:
            return None
        self.revision += 1
        return effects

    def is_unchanged(self, observation: Observation, snapshot: Snapshot) -> bool:
        """Return whether there is nothing to store or to signal since all was saved."""
        if self.state.has_doubtful_sources or observation.kind in ("pushed", "ended"):
            return False
        return snapshot.is_same(self._saved) and self.stored.was_seen_lately(observation.at)

    def forget_stored(self) -> None:
        """Have all of it written again, as its stored rows are about to be deleted."""
        self.stored, self._saved = StoredRows(self._host), None

    def mark_saved(self, snapshot: Snapshot) -> None:
        self._saved, self.is_clean = snapshot, True

    def is_idle(self, before: float) -> bool:
        """Return whether it was last seen before a time, and the store can restore all of it.

        The store does not have the pane of a session, nor the comparison of its sources.
        """
        state = self.state
        in_pane = state.pane is not None and state.ended_at is None
        seen_before = self.stored.was_seen_before(before)
        return self.is_clean and seen_before and not in_pane and not state.has_doubtful_sources

    def release_idle_threads(self, before: float) -> None:
        released = self.state.release_idle_threads(before) if self.is_clean else []
        for thread in released:
            self.stored.forget_thread(thread)
        if released:
            self._saved = None  # it holds the threads too


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
