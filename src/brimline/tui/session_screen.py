"""The screen of one session; on a wide terminal the list of all stays next to it."""

import time
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from brimline.context.events import MAIN
from brimline.sessions.ledger.explain import Explanation
from brimline.tui import texts
from brimline.tui.api_types import SessionDetail, WatchedSession
from brimline.tui.provider import SessionProvider
from brimline.tui.screens import FramedScreen
from brimline.tui.session_list import SessionList
from brimline.tui.session_view import SessionPage
from brimline.tui.styled_text import Line, StyledText
from brimline.tui.widgets import LinesWidget, PromptInput, SessionLines

SPLIT_MIN_COLUMNS = 120  # from here on the list is next to the session
LIST_COLUMNS = 44  # of that list
SCROLL_BAR = PAGE_PADDING = 1  # columns
# What fills a session is read again no sooner than this, and after ten times what a read takes.
MIN_EXPLANATION_S = 2.0
EXPLANATION_PAUSE = 10


class SessionScreen(FramedScreen):
    """One session: reading, chart, marks and messages; sends messages."""

    KEYS = " Esc back  n/p session  t thread  e explain  m message  u urgent  ? help  q quit"
    SHORT_KEYS = " Esc back  e explain  ? help  q quit"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", show=False),
        Binding("n", "move(1)", show=False),
        Binding("p", "move(-1)", show=False),
        Binding("t", "next_thread", show=False),
        Binding("e", "toggle_explanation", show=False),
        Binding("m", "write(False)", show=False),
        Binding("u", "write(True)", show=False),
    ]

    def __init__(self, sessions: SessionList, provider: SessionProvider, key: str) -> None:
        super().__init__(sessions)
        self._provider = provider
        self._key = key
        self._thread = MAIN
        self._detail: SessionDetail | None = None
        self._requested: tuple[WatchedSession, str] | None = None
        self._loading = False
        self._is_explaining = False
        self._explanation: Explanation | None = None
        self._explained: WatchedSession | None = None
        self._reading_explanation = False
        self._explain_again_at = 0.0
        self._urgent = False
        self._send_result = ""

    def compose_body(self) -> ComposeResult:
        with Horizontal():
            yield SessionLines("side-list", self.sessions.colour)
            yield LinesWidget("page", self.sessions.colour)
        yield PromptInput(id="message")

    def on_mount(self) -> None:
        self.lines_widget("page").focus()

    @property
    def _prompt(self) -> PromptInput:
        return self.query_one("#message", PromptInput)

    def header(self) -> Line:
        return self.sessions.header_line(f"  {self._send_result}" if self._send_result else "")

    def footer(self) -> str:
        if not self._prompt.display:
            return super().footer()
        kind = "urgent message" if self._urgent else "message"
        return f" {kind}: Enter send  Esc cancel"

    def draw_body(self) -> None:
        self._draw_list()
        view = self.sessions.views.get(self._key)
        if view is None:
            self.lines_widget("page").show([[StyledText("This session no longer exists.", "bold")]])
            return
        self._request_detail(view)
        page = SessionPage(
            self._page_columns, self.sessions.now, self.sessions.home, self.sessions.colour
        )
        if self._is_explaining:
            self._request_explanation(view)
            lines = page.explanation_lines(view, self._explanation, self._thread)
        else:
            lines = page.lines(self._detail or SessionDetail(view), self._thread)
        self.lines_widget("page").show(lines)

    @property
    def _page_columns(self) -> int:
        """The width of the page; the widget has it only after the next layout."""
        side_list = LIST_COLUMNS + SCROLL_BAR if self.has_class("split") else 0
        return self.size.width - side_list - PAGE_PADDING - SCROLL_BAR

    def _draw_list(self) -> None:
        is_split = self.size.width >= SPLIT_MIN_COLUMNS
        self.set_class(is_split, "split")
        if is_split:
            side_list = self.query_one(SessionLines)
            side_list.selected = self._key
            visible = self.sessions.visible()
            side_list.show_sessions(visible, self.sessions.rows(visible, LIST_COLUMNS))

    def _request_detail(self, view: WatchedSession) -> None:
        """Load the timeline if the session changed since the last time.

        One request at a time: a session that changes faster than it loads must still be drawn.
        """
        wanted = (view, self.sessions.connection.state)
        if self._loading or self._requested == wanted or self.sessions.connection.state == "lost":
            return
        self._requested, self._loading = wanted, True
        self.run_worker(self._load_detail(view))

    async def _load_detail(self, view: WatchedSession) -> None:
        detail = await self._provider.load_detail(view, self.sessions.connection.state == "live")
        self._loading = False
        if view.key == self._key:  # else the user has moved on
            self._detail = detail
        self.draw()

    def _request_explanation(self, view: WatchedSession) -> None:
        """Load what fills the session if it changed, with pauses: the whole transcript is read."""
        if self._reading_explanation or self._explained == view:
            return
        if time.monotonic() < self._explain_again_at or self.sessions.connection.state == "lost":
            return
        self._explained, self._reading_explanation = view, True
        self.run_worker(self._load_explanation(view))

    async def _load_explanation(self, view: WatchedSession) -> None:
        begun, is_live = time.monotonic(), self.sessions.connection.state == "live"
        explanation = await self._provider.load_explanation(view, is_live)
        self._reading_explanation = False
        if view.key == self._key:
            self._explanation = explanation
            took = time.monotonic() - begun
            self._explain_again_at = begun + max(MIN_EXPLANATION_S, EXPLANATION_PAUSE * took)
        self.draw()

    def action_toggle_explanation(self) -> None:
        """Show what fills the session, or its figures and chart again."""
        self._is_explaining = not self._is_explaining
        self.lines_widget("page").scroll_home(animate=False)
        self.draw()

    def action_back(self) -> None:
        """Close the prompt, else the explanation, else the screen."""
        if self._prompt.display:
            self._close_prompt()
        elif self._is_explaining:
            self.action_toggle_explanation()
        else:
            self.dismiss()

    def action_move(self, by: int) -> None:
        """Show the next or the previous session of the list."""
        keys = [view.key for view in self.sessions.visible()]
        if self._key in keys:
            self._show_session(keys[(keys.index(self._key) + by) % len(keys)])

    @on(SessionLines.Opened)
    def session_opened(self, event: SessionLines.Opened) -> None:
        event.stop()  # else the app would open a second screen
        self._show_session(event.key)

    def _show_session(self, key: str) -> None:
        self._key, self._thread, self._send_result = key, MAIN, ""
        self._detail = self._requested = self._explanation = self._explained = None
        self._explain_again_at = 0.0
        self.lines_widget("page").scroll_home(animate=False)
        self.draw()

    def action_next_thread(self) -> None:
        view = self.sessions.views.get(self._key)
        names = [thread.thread for thread in view.threads] if view else []
        if names:
            index = names.index(self._thread) if self._thread in names else -1
            self._thread = names[(index + 1) % len(names)]
            self.draw()

    def action_write(self, urgent: bool) -> None:
        self._urgent = urgent
        when = "after the next tool call" if urgent else "at the start of the next turn"
        self._prompt.placeholder = f"message to this session, delivered {when}"
        self._prompt.open()
        self.draw()

    @on(PromptInput.Submitted, "#message")
    async def message_submitted(self, event: PromptInput.Submitted) -> None:
        text = event.value.strip()
        self._close_prompt()
        if text:
            await self._send(text)

    async def _send(self, text: str) -> None:
        view = self.sessions.views.get(self._key)
        if view is not None:
            reason = await self._provider.send_message(view.session.id, text, self._urgent)
            self._send_result = (
                f"not sent: {texts.one_line(reason)}" if reason else "message queued"
            )
            self._requested = None
            self.draw()

    def _close_prompt(self) -> None:
        self._prompt.value = ""
        self._prompt.display = False
        self.lines_widget("page").focus()
        self.draw()
