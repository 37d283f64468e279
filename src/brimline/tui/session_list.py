"""The state behind the overview: all sessions, and how they are filtered and sorted."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from brimline.terminal.text import count_of, strip_control
from brimline.tui.api_types import WatchedSession
from brimline.tui.filter import SORTS, ListOptions, group_starts, select_sessions
from brimline.tui.provider import AllSessions, Connection, SessionChanged, Update
from brimline.tui.rows import OverviewRows
from brimline.tui.styled_text import Line, StyledText
from brimline.tui.texts import connection_line


class SessionList:
    """All sessions, and which of them are visible; sets `needs_redraw` on every change.

    Sessions older than `max_age_s` are hidden; None shows all.
    """

    def __init__(
        self,
        options: ListOptions,
        max_age_s: float | None = None,
        colour: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.options = options
        self.colour = colour
        self.views: dict[str, WatchedSession] = {}
        self.connection = Connection("connecting")
        self.needs_redraw = False
        self._max_age_s = max_age_s
        self._include_old = max_age_s is None
        self._clock = clock

    @property
    def now(self) -> float:
        return self._clock()

    @property
    def home(self) -> Path:
        return self.options.home

    def apply(self, update: Update) -> None:
        match update:
            case AllSessions():
                self.views = {view.key: view for view in update.views}
                self.connection = update.connection
            case SessionChanged():
                self.views[update.view.key] = update.view
            case Connection():
                self.connection = update
        self.needs_redraw = True

    def visible(self) -> list[WatchedSession]:
        since = None if self._include_old or self._max_age_s is None else self.now - self._max_age_s
        return select_sessions(
            self.views.values(), msgspec.structs.replace(self.options, since=since)
        )

    def rows(self, visible: Sequence[WatchedSession], width: int) -> OverviewRows:
        starts = group_starts(visible, self.options.sort)
        by_cost = self.options.sort == "cost"
        return OverviewRows(width, self.now, self.home, starts, by_cost)

    def header_line(self, message: str = "") -> Line:
        """The top line of every screen: the connection, and a message or what is shown."""
        return [
            StyledText(" brimline  ", "bold"),
            *connection_line(self.connection),
            StyledText(message or self._description()),
        ]

    def _description(self) -> str:
        sort = self.options.sort
        parts = [
            f"{len(self.visible())} of {count_of(len(self.views), 'session')}",
            "most urgent first" if sort == "need" else f"by {sort}",
        ]
        if self.options.words:
            parts.append(f"filter: {strip_control(' '.join(self.options.words))}")
        return "".join(f"  {part}" for part in parts)

    def set_filter(self, text: str) -> None:
        self.options = msgspec.structs.replace(self.options, words=tuple(text.split()))
        self.needs_redraw = True

    def next_sort(self) -> None:
        after = SORTS[(SORTS.index(self.options.sort) + 1) % len(SORTS)]
        self.options = msgspec.structs.replace(self.options, sort=after)
        self.needs_redraw = True

    def toggle_old(self) -> None:
        """Show or hide sessions that ended or are old."""
        self._include_old = not self._include_old
        self.needs_redraw = True
