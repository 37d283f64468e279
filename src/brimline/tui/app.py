"""The application: it follows its origin, and draws what changed."""

import asyncio
import signal
import time
from typing import ClassVar

from textual import events, on
from textual.app import App
from textual.binding import Binding, BindingType

from brimline.tui.provider import Origin
from brimline.tui.screens import Framed, Help, Overview
from brimline.tui.session_list import Board
from brimline.tui.session_screen import OneSession
from brimline.tui.widgets import Prompt

OFTEN = 0.2
"""However much changes, it is drawn at most so often, in seconds."""

SELDOM = 1.0
"""So often where nothing changed, for the ages."""

STYLE = """
Screen { layout: vertical; layers: all instead; background: ansi_default; color: ansi_default; }
Lines { background: ansi_default; color: ansi_default; scrollbar-size-vertical: 1; }
#top, #head, #keys { height: 1; overflow: hidden; }
#sessions, #page { height: 1fr; overflow-x: hidden; scrollbar-gutter: stable; }
#page { padding-left: 1; }
Prompt, Prompt:focus { border: none; height: 1; padding: 0 1; background: ansi_default;
    color: ansi_default; }
#small { layer: instead; width: 100%; height: 100%; display: none; }
.small #small { display: block; }
"""
# What is not displayed loses the focus: nothing that takes keys is ever hidden but the inputs.


class Watch(App[None]):
    """`brimline watch`: follows its origin until the user quits."""

    CSS = STYLE
    TITLE = "brimline watch"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", show=False),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("question_mark", "help", show=False),
    ]

    def __init__(self, origin: Origin, board: Board) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.animation_level = "none"
        self._origin = origin
        self._board = board
        self._drawn_at = 0.0

    def on_mount(self) -> None:
        """Follow, draw, and end gently when told to from outside."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit)
        self.push_screen(Overview(self._board))
        self.run_worker(self._follow())
        self.set_interval(OFTEN, self._tick)

    async def _follow(self) -> None:
        async for news in self._origin.news():
            self._board.hear(news)

    def _tick(self) -> None:
        now = time.monotonic()
        if self._board.changed or now - self._drawn_at >= SELDOM:
            self._board.changed, self._drawn_at = False, now
            if isinstance(self.screen, Framed):
                self.screen.draw()

    def on_key(self, event: events.Key) -> None:
        """Who types ahead: a letter that was on its way when a prompt opened belongs to it."""
        prompt = self.focused
        if isinstance(prompt, Prompt) and event.is_printable and event.character:
            event.prevent_default()
            prompt.insert_text_at_cursor(event.character)

    @on(Overview.Opened)
    def opened(self, event: Overview.Opened) -> None:
        """Show one session."""
        self.push_screen(OneSession(self._board, self._origin, event.key))

    def action_help(self) -> None:
        """The keys and the signs."""
        if not isinstance(self.screen, Help):
            self.push_screen(Help(self._board))
