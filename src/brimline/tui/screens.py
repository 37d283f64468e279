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
from brimline.tui.session_list import SessionList
from brimline.tui.styled_text import Line, Span
from brimline.tui.widgets import Lines, Prompt, SessionLines

MIN_SIZE = (rows.MIN_COLUMNS, 10)
"""What a terminal must have at least, in columns and rows."""


class FramedScreen(Screen[None]):
    """A screen with a line above and a line below; a terminal that is too small is told."""

    KEYS: ClassVar[str] = ""

    def __init__(self, sessions: SessionList) -> None:
        super().__init__()
        self.sessions = sessions

    def compose(self) -> ComposeResult:
        """Above, body, below; and what is shown instead of all."""
        yield Lines("top", self.sessions.colour)
        yield from self.compose_body()
        yield Lines("keys", self.sessions.colour)
        yield Lines("small", self.sessions.colour)

    def compose_body(self) -> ComposeResult:
        """What stands between the two lines."""
        yield Lines("page", self.sessions.colour)

    def header(self) -> Line:
        """The line above."""
        return self.sessions.header_line()

    def footer(self) -> str:
        """The line below: what can be pressed."""
        return self.KEYS

    def draw(self) -> None:
        """Draw what is known now; a screen that is being made or taken away has no place for it."""
        with contextlib.suppress(NoMatches):
            self._draw()

    def _draw(self) -> None:
        small = self.size.width < MIN_SIZE[0] or self.size.height < MIN_SIZE[1]
        self.set_class(small, "small")
        if small:
            self.lines_widget("small").show(texts.too_small_lines(self.size, MIN_SIZE))
            return
        self.lines_widget("top").show([self.header()])
        self.lines_widget("keys").show([[Span(self.footer(), "dim")]])
        self.draw_body()

    def draw_body(self) -> None:
        """Draw the body."""
        raise NotImplementedError

    def lines_widget(self, id: str) -> Lines:
        """One of the widgets, by its name."""
        return self.query_one(f"#{id}", Lines)

    def on_resize(self) -> None:
        """Draw, for the first time or for a new size, once everything has its size."""
        self.call_after_refresh(self.draw)

    def on_screen_resume(self) -> None:
        """Draw what happened meanwhile."""
        self.call_after_refresh(self.draw)


class OverviewScreen(FramedScreen):
    """Every session that is looked for."""

    KEYS = " j/k move  Enter open  / filter  s sort  a all  ? help  q quit"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", show=False),
        Binding("s", "sort", show=False),
        Binding("a", "toggle_old", show=False),
        Binding("escape", "clear_filter", show=False),
    ]

    class Opened(Message):
        """A session is to be shown."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def compose_body(self) -> ComposeResult:
        """The titles, the sessions, and a line to write a filter in."""
        yield Lines("head", self.sessions.colour)
        yield SessionLines("sessions", self.sessions.colour)
        yield Prompt(placeholder="agent, project, host, model: all words must fit", id="filter")

    def on_mount(self) -> None:
        """Keys go to the sessions."""
        self.query_one(SessionLines).focus()

    @property
    def _filter_prompt(self) -> Prompt:
        return self.query_one("#filter", Prompt)

    def draw_body(self) -> None:
        """Draw the sessions, or what to do where there are none."""
        sessions, board = self.query_one(SessionLines), self.sessions
        made = rows.OverviewRows(sessions.scrollable_content_region.width, board.now, board.home)
        shown = board.visible()
        self.lines_widget("head").show([made.header()])
        sessions.show_sessions(shown, made)
        if not shown:
            sessions.show(
                texts.empty_list_lines(board.connection.state, bool(board.views), board.options)
            )

    def footer(self) -> str:
        """What can be pressed, also while a filter is written."""
        return (
            " filter: Enter keeps it  Esc takes it away"
            if self._filter_prompt.display
            else self.KEYS
        )

    def action_filter(self) -> None:
        """Write a filter."""
        self._filter_prompt.open()
        self.draw()

    def action_clear_filter(self) -> None:
        """Back to all sessions."""
        self._filter_prompt.value = ""
        self.close_filter()

    def action_sort(self) -> None:
        """The next order."""
        self.sessions.next_sort()
        self.draw()

    def action_toggle_old(self) -> None:
        """Also what ended or is old, or not."""
        self.sessions.toggle_old()
        self.draw()

    @on(Prompt.Changed, "#filter")
    def filter_changed(self, event: Prompt.Changed) -> None:
        """Show what fits while it is written."""
        self.sessions.set_filter(event.value)
        self.draw()

    @on(Prompt.Submitted, "#filter")
    def close_filter(self) -> None:
        """The filter stays, its line goes."""
        self._filter_prompt.display = False
        self.query_one(SessionLines).focus()
        self.draw()

    @on(SessionLines.Opened)
    def session_opened(self, event: SessionLines.Opened) -> None:
        """Have a session shown."""
        self.post_message(self.Opened(event.key))


class HelpScreen(FramedScreen):
    """The keys and the signs."""

    KEYS = " Esc back  j/k scroll  q quit"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark", "app.pop_screen", show=False)
    ]

    def on_mount(self) -> None:
        """Keys go to the text."""
        self.lines_widget("page").focus()

    def draw_body(self) -> None:
        """Draw it."""
        self.lines_widget("page").show(texts.HELP)
