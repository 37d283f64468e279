"""What is known of all sessions at this moment, and how it is looked at."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from brimline.terminal.text import count_of, strip_control
from brimline.tui.api_types import View
from brimline.tui.filter import SORTS, Look, shown
from brimline.tui.styled_text import Line, Piece
from brimline.tui.texts import link_line
from brimline.tui.updates import Changed, Everything, Link, News


class Board:
    """Takes the news; `changed` is set by whatever makes a new drawing worth while.

    `span` is how old a session may be, in seconds; None: any.
    """

    def __init__(
        self,
        look: Look,
        span: float | None = None,
        colour: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.look = look
        self.colour = colour
        self.views: dict[str, View] = {}
        self.link = Link("connecting")
        self.changed = False
        self._span = span
        self._every = span is None
        self._clock = clock

    @property
    def now(self) -> float:
        """The time by which ages are told."""
        return self._clock()

    @property
    def home(self) -> Path:
        """The home folder, shown as ~."""
        return self.look.home

    def hear(self, news: News) -> None:
        """Take what is new."""
        match news:
            case Everything():
                self.views = {view.key: view for view in news.views}
                self.link = news.link
            case Changed():
                self.views[news.view.key] = news.view
            case Link():
                self.link = news
        self.changed = True

    def shown(self) -> list[View]:
        """The sessions that are looked for, in their order."""
        since = None if self._every or self._span is None else self.now - self._span
        return shown(self.views.values(), msgspec.structs.replace(self.look, since=since))

    def top(self, said: str = "") -> Line:
        """The line above every screen: where it comes from, and what is shown, or what is said."""
        return [Piece(" brimline  ", "bold"), *link_line(self.link), Piece(said or self._about())]

    def _about(self) -> str:
        sort = self.look.sort
        said = [
            f"{len(self.shown())} of {count_of(len(self.views), 'session')}",
            "fullest first" if sort == "fullest" else f"by {sort}",
        ]
        if self.look.words:
            said.append(f"filter: {strip_control(' '.join(self.look.words))}")
        return "".join(f"  {one}" for one in said)

    def narrow(self, text: str) -> None:
        """Show only what has all these words."""
        self.look = msgspec.structs.replace(self.look, words=tuple(text.split()))
        self.changed = True

    def sort(self) -> None:
        """The next order."""
        after = SORTS[(SORTS.index(self.look.sort) + 1) % len(SORTS)]
        self.look = msgspec.structs.replace(self.look, sort=after)
        self.changed = True

    def every(self) -> None:
        """Also what ended or is old, or not."""
        self._every = not self._every
        self.changed = True
