"""A session that is monitored: its state, its signals so far, and what of it is stored."""

from collections.abc import Sequence

from brimline.agents.observations import Observation
from brimline.monitor.fired_signals import SignalHistory
from brimline.monitor.persistence import HOSTNAME, StoredRows
from brimline.monitor.session_state import SessionState
from brimline.monitor.snapshot import Snapshot
from brimline.store.base import ExpectRevision, Store, Write


class MonitoredSession:
    """One session: its state, its signals so far, and what of it is stored.

    `handoff_pending`: a document is to be re-injected. `is_clean`: all is stored. `revision` is the
    stored one when it was restored or last written, None if no other monitor writes it.
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
