"""The frame of every screen, the overview and the help."""

import contextlib
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.message import Message
from textual.screen import Screen

from brimline.tui import rows, texts
from brimline.tui.session_list import Board
from brimline.tui.styled_text import Line, Piece
from brimline.tui.widgets import Lines, Prompt, Sessions

LEAST = (rows.LEAST, 10)
"""What a terminal must have at least, in columns and rows."""


class Framed(Screen[None]):
    """A screen with a line above and a line below; a terminal that is too small is told."""

    KEYS: ClassVar[str] = ""

    def __init__(self, board: Board) -> None:
        super().__init__()
        self.board = board

    def compose(self) -> ComposeResult:
        """Above, body, below; and what is shown instead of all."""
        yield Lines("top", self.board.colour)
        yield from self.body()
        yield Lines("keys", self.board.colour)
        yield Lines("small", self.board.colour)

    def body(self) -> ComposeResult:
        """What stands between the two lines."""
        yield Lines("page", self.board.colour)

    def top(self) -> Line:
        """The line above."""
        return self.board.top()

    def keys(self) -> str:
        """The line below: what can be pressed."""
        return self.KEYS

    def draw(self) -> None:
        """Draw what is known now; a screen that is being made or taken away has no place for it."""
        with contextlib.suppress(NoMatches):
            self._draw()

    def _draw(self) -> None:
        small = self.size.width < LEAST[0] or self.size.height < LEAST[1]
        self.set_class(small, "small")
        if small:
            self.lines("small").show(texts.too_small(self.size, LEAST))
            return
        self.lines("top").show([self.top()])
        self.lines("keys").show([[Piece(self.keys(), "dim")]])
        self.fill()

    def fill(self) -> None:
        """Draw the body."""
        raise NotImplementedError

    def lines(self, id: str) -> Lines:
        """One of the widgets, by its name."""
        return self.query_one(f"#{id}", Lines)

    def on_resize(self) -> None:
        """Draw, for the first time or for a new size, once everything has its size."""
        self.call_after_refresh(self.draw)

    def on_screen_resume(self) -> None:
        """Draw what happened meanwhile."""
        self.call_after_refresh(self.draw)


class Overview(Framed):
    """Every session that is looked for."""

    KEYS = " j/k move  Enter open  / filter  s sort  a all  ? help  q quit"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", show=False),
        Binding("s", "sort", show=False),
        Binding("a", "every", show=False),
        Binding("escape", "forget", show=False),
    ]

    class Opened(Message):
        """A session is to be shown."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def body(self) -> ComposeResult:
        """The titles, the sessions, and a line to write a filter in."""
        yield Lines("head", self.board.colour)
        yield Sessions("sessions", self.board.colour)
        yield Prompt(placeholder="agent, project, host, model: all words must fit", id="filter")

    def on_mount(self) -> None:
        """Keys go to the sessions."""
        self.query_one(Sessions).focus()

    @property
    def _filter(self) -> Prompt:
        return self.query_one("#filter", Prompt)

    def fill(self) -> None:
        """Draw the sessions, or what to do where there are none."""
        sessions, board = self.query_one(Sessions), self.board
        made = rows.Rows(sessions.scrollable_content_region.width, board.now, board.home)
        shown = board.shown()
        self.lines("head").show([made.head()])
        sessions.put(shown, made)
        if not shown:
            sessions.show(texts.nothing(board.link.state, bool(board.views), board.look))

    def keys(self) -> str:
        """What can be pressed, also while a filter is written."""
        return " filter: Enter keeps it  Esc takes it away" if self._filter.display else self.KEYS

    def action_filter(self) -> None:
        """Write a filter."""
        self._filter.ask()
        self.draw()

    def action_forget(self) -> None:
        """Back to all sessions."""
        self._filter.value = ""
        self.written()

    def action_sort(self) -> None:
        """The next order."""
        self.board.sort()
        self.draw()

    def action_every(self) -> None:
        """Also what ended or is old, or not."""
        self.board.every()
        self.draw()

    @on(Prompt.Changed, "#filter")
    def narrowed(self, event: Prompt.Changed) -> None:
        """Show what fits while it is written."""
        self.board.narrow(event.value)
        self.draw()

    @on(Prompt.Submitted, "#filter")
    def written(self) -> None:
        """The filter stays, its line goes."""
        self._filter.display = False
        self.query_one(Sessions).focus()
        self.draw()

    @on(Sessions.Opened)
    def opened(self, event: Sessions.Opened) -> None:
        """Have a session shown."""
        self.post_message(self.Opened(event.key))


class Help(Framed):
    """The keys and the signs."""

    KEYS = " Esc back  j/k scroll  q quit"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark", "app.pop_screen", show=False)
    ]

    def on_mount(self) -> None:
        """Keys go to the text."""
        self.lines("page").focus()

    def fill(self) -> None:
        """Draw it."""
        self.lines("page").show(texts.HELP)
