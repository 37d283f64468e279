"""What a monitor knows of a session beside what it watches: what was said, and what is stored."""

from brimline.monitor.heard import Heard
from brimline.monitor.rows import Stored
from brimline.monitor.said import Before
from brimline.monitor.state import State
from brimline.monitor.watched import Watched
from brimline.sources.base import Look


class Known:
    """All that is known of one session; one thing at a time is heard of it.

    It is `owed` its document from a compaction on until it got it, and `at_rest` while all that was
    heard is kept.
    """

    def __init__(self, watched: Watched, before: Before) -> None:
        self.watched = watched
        self.before = before
        self.stored = Stored()
        self.owed = before.owed
        self._kept: State | None = None
        self.at_rest = False

    def is_kept(self, heard: Heard, state: State) -> bool:
        """Whether there is nothing to keep or to say: all is as it was when all was kept."""
        if self._kept is None or not self._kept.same_as(state) or self.watched.doubted:
            return False
        return heard.what != "pushed" and self.stored.seen_lately(heard.at)

    def keeps(self, state: State) -> None:
        """All is kept as it is now."""
        self._kept, self.at_rest = state, True

    def look(self, heard: Heard) -> Look:
        """What a hook would change, where it is owed nothing.

        What else may have changed, as its client's settings, is seen as often as that it lives.
        """
        if not self.at_rest or self.owed or not self.stored.seen_lately(heard.at):
            return "unsure"
        return self.watched.look(heard)
