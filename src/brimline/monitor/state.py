"""What a session is at a moment: where that is the same, there is nothing to keep or to say."""

from typing import NamedTuple

from brimline.events import Call
from brimline.tracker import Session
from brimline.windows import ClientSettings


class State(NamedTuple):
    """All that a session's readings, its rows and what is said of it are made from."""

    folded: Session
    told: Call | None
    window: int | None
    cycle: int
    compacting: bool
    cleared: bool
    model: str | None
    version: str | None
    folder: str | None
    parent: str | None
    host: str | None
    ended_at: float | None
    settings: ClientSettings

    def same_as(self, other: "State") -> bool:
        """Whether nothing is new; what the files tell is then the very same."""
        return self.folded is other.folded and self[1:] == other[1:]
