"""The Textual application: it follows its provider, and redraws when something changed."""

import asyncio
import os
import signal
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import ClassVar

from textual import events, on
from textual.app import App
from textual.binding import Binding, BindingType

from brimline.tui.provider import SessionProvider
from brimline.tui.screens import FramedScreen, HelpScreen, OverviewScreen
from brimline.tui.session_list import SessionList
from brimline.tui.session_screen import SessionScreen
from brimline.tui.widgets import PromptInput, SessionLines

MIN_REDRAW_INTERVAL_S = 0.2
MAX_REDRAW_INTERVAL_S = 1.0  # without changes, for the ages
MAX_EXIT_S = 2.0  # after a signal: a terminal that takes no output blocks Textual for ever
RESUME_DELAY_S = 0.1  # shells continue a stopped job just before or after a signal that ends it

STYLE = """
Screen { layout: vertical; layers: all instead; background: ansi_default; color: ansi_default; }
LinesWidget { background: ansi_default; color: ansi_default; scrollbar-size-vertical: 1; }
#top, #head, #keys { height: 1; overflow: hidden; }
#sessions, #page { height: 1fr; overflow-x: hidden; scrollbar-gutter: stable; }
#page { padding-left: 1; }
#side-list { width: 45; height: 1fr; overflow-x: hidden; scrollbar-gutter: stable; display: none; }
.split #side-list { display: block; }
PromptInput, PromptInput:focus { border: none; height: 1; padding: 0 1; background: ansi_default;
    color: ansi_default; }
#small { layer: instead; width: 100%; height: 100%; display: none; }
.small #small { display: block; }
"""
# A hidden widget loses the focus: of the widgets that take keys only the prompts are ever hidden.


class WatchApp(App[None]):
    """`brimline watch`: runs until the user quits."""

    CSS = STYLE
    TITLE = "brimline watch"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", show=False),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("question_mark", "help", show=False),
    ]

    def __init__(self, provider: SessionProvider, sessions: SessionList) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.animation_level = "none"
        self._provider = provider
        self._sessions = sessions
        self._drawn_at = 0.0

    def on_mount(self) -> None:
        self.push_screen(OverviewScreen(self._sessions))
        self.run_worker(self._follow())
        self.set_interval(MIN_REDRAW_INTERVAL_S, self._tick)

    async def _follow(self) -> None:
        async for update in self._provider.updates():
            self._sessions.apply(update)

    def _tick(self) -> None:
        now = time.monotonic()
        if self._sessions.needs_redraw or now - self._drawn_at >= MAX_REDRAW_INTERVAL_S:
            self._sessions.needs_redraw, self._drawn_at = False, now
            if isinstance(self.screen, FramedScreen):
                self.screen.draw()

    def on_key(self, event: events.Key) -> None:
        """Insert a letter that was typed while the prompt was opening."""
        prompt = self.focused
        if isinstance(prompt, PromptInput) and event.is_printable and event.character:
            event.prevent_default()
            prompt.insert_text_at_cursor(event.character)

    @on(SessionLines.Opened)
    def open_session(self, event: SessionLines.Opened) -> None:
        self.push_screen(SessionScreen(self._sessions, self._provider, event.key))

    def action_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self._sessions))


class TerminalApp(WatchApp):
    """`brimline watch` on a real terminal: it also ends by a signal, and with its terminal.

    `end_signal` is the signal that ended it.
    """

    end_signal: int | None = None

    def on_load(self) -> None:
        """Handle signals, before Textual changes the terminal."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self.call_after_refresh, self.exit)
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Not of the loop: Textual's writer ends at the first failed write, and its queue then
            # blocks the loop.
            signal.signal(number, self._end)

    def on_mount(self) -> None:
        self.set_interval(MIN_REDRAW_INTERVAL_S, self._check_terminal)
        suspend, resume = signal.getsignal(signal.SIGTSTP), signal.getsignal(signal.SIGCONT)
        loop = asyncio.get_running_loop()
        if callable(suspend):
            # Of the loop: Textual's handler writes to a queue, and would wait for ever for its lock
            # if it ran while the interrupted code had it.
            loop.add_signal_handler(signal.SIGTSTP, suspend, signal.SIGTSTP, None)
        if callable(resume):  # Textual's, which stops a background job
            loop.add_signal_handler(
                signal.SIGCONT, loop.call_later, RESUME_DELAY_S, resume, signal.SIGCONT, None
            )

    def _check_terminal(self) -> None:
        """End with a terminal that is not our controlling one: it sends no signal."""
        if not os.isatty(0):
            signal.raise_signal(signal.SIGHUP)

    def _end(self, number: int, frame: FrameType | None) -> None:
        """Restore the terminal and exit; a second signal, or the time limit, kills the process."""
        self.end_signal = number
        signal.signal(number, signal.SIG_DFL)
        if not _may_use_terminal():
            signal.raise_signal(number)
        timer = threading.Timer(MAX_EXIT_S, os.kill, (os.getpid(), number))
        timer.daemon = True
        timer.start()
        with suppress(RuntimeError):  # it is exiting already
            loop = asyncio.get_running_loop()
            loop.call_soon_threadsafe(self.call_after_refresh, self.exit)


def _may_use_terminal() -> bool:
    """Return whether the terminal is open, and no other job has it: using it would stop us."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:  # it is closed, or not our controlling terminal
        return os.isatty(0)
