"""What a monitor knows of a session beside what it watches: what was said, and what is stored."""

from brimline.monitor.persistence import StoredRows
from brimline.monitor.session_state import SessionState
from brimline.monitor.signal_history import SignalHistory
from brimline.monitor.state import State
from brimline.observations import Observation


class Known:
    """All that is known of one session; one thing at a time is heard of it.

    It is `owed` its document from a compaction on until it got it, and `at_rest` while all that was
    heard is kept.
    """

    def __init__(self, watched: SessionState, before: SignalHistory) -> None:
        self.watched = watched
        self.before = before
        self.stored = StoredRows()
        self.owed = before.owed
        self._kept: State | None = None
        self.at_rest = False

    def is_kept(self, heard: Observation, state: State) -> bool:
        """Whether there is nothing to keep or to say: all is as it was when all was kept."""
        if self._kept is None or not self._kept.same_as(state) or self.watched.doubted:
            return False
        return heard.what not in ("pushed", "ended") and self.stored.seen_lately(heard.at)

    def keeps(self, state: State) -> None:
        """All is kept as it is now."""
        self._kept, self.at_rest = state, True

    def is_idle(self, before: float) -> bool:
        """Whether it was last seen before a time, and the store has all there is to know of it.

        The store does not know the pane of a session, nor what its sources do not agree on.
        """
        watched = self.watched
        in_pane = watched.pane is not None and watched.ended_at is None
        seen_before = self.stored.seen_before(before)
        return self.at_rest and seen_before and not in_pane and not watched.doubted

    def release_idle_threads(self, before: float) -> None:
        """Let go of subagents that wrote nothing since a time."""
        released = self.watched.release_idle_threads(before) if self.at_rest else []
        for thread in released:
            self.stored.release(thread)
        if released:
            self._kept = None  # it holds the threads too
