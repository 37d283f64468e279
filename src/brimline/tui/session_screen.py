"""The screen of one session."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from brimline.events import MAIN
from brimline.tui import texts
from brimline.tui.api_types import Detail, View
from brimline.tui.provider import Origin
from brimline.tui.screens import Framed
from brimline.tui.session_list import Board
from brimline.tui.session_view import Page
from brimline.tui.styled_text import Line, Piece
from brimline.tui.widgets import Prompt


class OneSession(Framed):
    """One session: figures, chart, marks, messages; a message can be sent."""

    KEYS = " Esc back  j/k scroll  t thread  m message  u urgent message  ? help  q quit"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", show=False),
        Binding("t", "thread", show=False),
        Binding("m", "write(False)", show=False),
        Binding("u", "write(True)", show=False),
    ]

    def __init__(self, board: Board, origin: Origin, key: str) -> None:
        super().__init__(board)
        self._origin = origin
        self._key = key
        self._thread = MAIN
        self._detail: Detail | None = None
        self._asked: tuple[View, str] | None = None
        self._loading = False
        self._urgent = False
        self._said = ""

    def body(self) -> ComposeResult:
        """The page, and a line to write a message in."""
        yield from super().body()
        yield Prompt(id="message")

    def on_mount(self) -> None:
        """Keys go to the page."""
        self.lines("page").focus()

    @property
    def _message(self) -> Prompt:
        return self.query_one("#message", Prompt)

    def top(self) -> Line:
        """Where it comes from, and what became of a message."""
        return self.board.top(f"  {self._said}" if self._said else "")

    def keys(self) -> str:
        """What can be pressed, also while a message is written."""
        if not self._message.display:
            return self.KEYS
        kind = "urgent message" if self._urgent else "message"
        return f" {kind}: Enter sends it  Esc leaves it"

    def fill(self) -> None:
        """Draw what is known of the session; what is not known yet is asked for."""
        view = self.board.views.get(self._key)
        if view is None:
            self.lines("page").show([[Piece("this session is not there any more", "bold")]])
            return
        self._ask(view)
        width = self.lines("page").scrollable_content_region.width
        page = Page(width, self.board.now, self.board.home, self.board.colour)
        self.lines("page").show(page.lines(self._detail or Detail(view), self._thread))

    def _ask(self, view: View) -> None:
        """Ask for what happened, unless that was done since it changed.

        One question at a time: a session that changes faster than it is told must not starve.
        """
        wanted = (view, self.board.link.state)
        if self._loading or self._asked == wanted or self.board.link.state == "lost":
            return
        self._asked, self._loading = wanted, True
        self.run_worker(self._load(view))

    async def _load(self, view: View) -> None:
        self._detail = await self._origin.detail(view, self.board.link.state == "live")
        self._loading = False
        self.draw()

    def action_back(self) -> None:
        """Leave the message, else the session."""
        if self._message.display:
            self._close()
        else:
            self.dismiss()

    def action_thread(self) -> None:
        """The next thread's figures and chart."""
        view = self.board.views.get(self._key)
        names = [thread.thread for thread in view.threads] if view else []
        if names:
            here = names.index(self._thread) if self._thread in names else -1
            self._thread = names[(here + 1) % len(names)]
            self.draw()

    def action_write(self, urgent: bool) -> None:
        """Write a message."""
        self._urgent = urgent
        when = "at the next tool result" if urgent else "when the next turn begins"
        self._message.placeholder = f"a message for this session, delivered {when}"
        self._message.ask()
        self.draw()

    @on(Prompt.Submitted, "#message")
    async def written(self, event: Prompt.Submitted) -> None:
        """Send it, if it says anything."""
        text = event.value.strip()
        self._close()
        if text:
            await self._send(text)

    async def _send(self, text: str) -> None:
        view = self.board.views.get(self._key)
        if view is not None:
            problem = await self._origin.send(view.session.id, text, self._urgent)
            self._said = f"not sent: {texts.one_line(problem)}" if problem else "message queued"
            self._asked = None
            self.draw()

    def _close(self) -> None:
        self._message.value = ""
        self._message.display = False
        self.lines("page").focus()
        self.draw()
