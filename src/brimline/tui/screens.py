"""The base of every screen, the overview and the help."""

import contextlib
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.screen import Screen

from brimline.tui import rows, texts
from brimline.tui.session_list import SessionList
from brimline.tui.styled_text import Line, StyledText
from brimline.tui.widgets import LinesWidget, PromptInput, SessionLines

MIN_SIZE = (rows.MIN_COLUMNS, 10)  # columns and rows


class FramedScreen(Screen[None]):
    """A screen with a header, a footer, and a notice instead if the terminal is too small."""

    KEYS: ClassVar[str] = ""
    SHORT_KEYS: ClassVar[str] = " Enter open  ? help  q quit"  # on a narrow terminal

    def __init__(self, sessions: SessionList) -> None:
        super().__init__()
        self.sessions = sessions

    def compose(self) -> ComposeResult:
        yield LinesWidget("top", self.sessions.colour)
        yield from self.compose_body()
        yield LinesWidget("keys", self.sessions.colour)
        yield LinesWidget("small", self.sessions.colour)

    def compose_body(self) -> ComposeResult:
        yield LinesWidget("page", self.sessions.colour)

    def header(self) -> Line:
        return self.sessions.header_line()

    def footer(self) -> str:
        return self.KEYS if len(self.KEYS) <= self.size.width else self.SHORT_KEYS

    def draw(self) -> None:
        """Draw the screen, unless it is being mounted or removed."""
        with contextlib.suppress(NoMatches):
            self._draw()

    def _draw(self) -> None:
        small = self.size.width < MIN_SIZE[0] or self.size.height < MIN_SIZE[1]
        self.set_class(small, "small")
        if small:
            self.lines_widget("small").show(texts.too_small_lines(self.size, MIN_SIZE))
            return
        self.lines_widget("top").show([self.header()])
        self.lines_widget("keys").show([[StyledText(self.footer(), "dim")]])
        self.draw_body()

    def draw_body(self) -> None:
        raise NotImplementedError

    def lines_widget(self, id: str) -> LinesWidget:
        return self.query_one(f"#{id}", LinesWidget)

    def on_resize(self) -> None:
        """Draw after the layout: the widgets have no size before."""
        self.call_after_refresh(self.draw)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.draw)


class OverviewScreen(FramedScreen):
    KEYS = " j/k move  Enter open  / filter  s sort  a all  ? help  q quit"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", show=False),
        Binding("s", "sort", show=False),
        Binding("a", "toggle_old", show=False),
        Binding("escape", "clear_filter", show=False),
    ]

    def compose_body(self) -> ComposeResult:
        yield LinesWidget("head", self.sessions.colour)
        yield SessionLines("sessions", self.sessions.colour)
        yield PromptInput(
            placeholder="words in agent, project, host, model, title or id", id="filter"
        )

    def on_mount(self) -> None:
        self.query_one(SessionLines).focus()

    @property
    def _filter_prompt(self) -> PromptInput:
        return self.query_one("#filter", PromptInput)

    def draw_body(self) -> None:
        lines, sessions = self.query_one(SessionLines), self.sessions
        width, visible = lines.scrollable_content_region.width, sessions.visible()
        formatter = sessions.rows(visible, width)
        self.lines_widget("head").show([formatter.header()])
        lines.show_sessions(visible, formatter)
        if not visible:
            state, has_hidden = sessions.connection.state, bool(sessions.views)
            lines.show(texts.empty_list_lines(state, has_hidden, sessions.options))

    def footer(self) -> str:
        is_open = self._filter_prompt.display
        return " filter: Enter keep  Esc clear" if is_open else super().footer()

    def action_filter(self) -> None:
        self._filter_prompt.open()
        self.draw()

    def action_clear_filter(self) -> None:
        self._filter_prompt.value = ""
        self.close_filter()

    def action_sort(self) -> None:
        self.sessions.next_sort()
        self.draw()

    def action_toggle_old(self) -> None:
        self.sessions.toggle_old()
        self.draw()

    @on(PromptInput.Changed, "#filter")
    def filter_changed(self, event: PromptInput.Changed) -> None:
        self.sessions.set_filter(event.value)
        self.draw()

    @on(PromptInput.Submitted, "#filter")
    def close_filter(self) -> None:
        """Hide the prompt; the filter stays."""
        self._filter_prompt.display = False
        self.query_one(SessionLines).focus()
        self.draw()


class HelpScreen(FramedScreen):
    KEYS = SHORT_KEYS = " Esc back  j/k scroll  q quit"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark", "app.pop_screen", show=False)
    ]

    def on_mount(self) -> None:
        self.lines_widget("page").focus()

    def draw_body(self) -> None:
        self.lines_widget("page").show(texts.HELP)
