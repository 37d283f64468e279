"""Drives the application with a daemon and files of the test."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from brimline.agents.transcripts.source import Places
from brimline.api.client.stream import DaemonClient
from brimline.settings import Settings
from brimline.tui.app import WatchApp
from brimline.tui.files import TranscriptFiles
from brimline.tui.filter import ListOptions
from brimline.tui.provider import Intervals, SessionProvider
from brimline.tui.session_list import SessionList

from .sample_views import NOW
from .svg_snapshot import rows

QUICK = Intervals(retry_s=0.05, tries=3, files_s=0.05, silence_s=60.0)
HOME = Path("/home/ada")
DAY_S = 86_400.0
MAX_CHECKS = 400  # checks, 0.05 s apart; generous, for a busy machine


def files_in(folder: Path) -> TranscriptFiles:
    """The files of a user who has only those of the test."""
    places = Places(folder / "home", {"CLAUDE_CONFIG_DIR": str(folder / "home" / ".claude")})
    return TranscriptFiles(places, Settings(), folder / "cache", ("claude",))


def watch(
    socket: Path | None, folder: Path, colour: bool = True, pace: Intervals = QUICK
) -> WatchApp:
    """The application at noon."""
    daemon = None if socket is None else DaemonClient(socket)
    origin = SessionProvider(daemon, files_in(folder), pace, lambda: NOW)
    return WatchApp(origin, SessionList(ListOptions(HOME), DAY_S, colour, lambda: NOW))


class AppDriver:
    """Reads the screen and presses keys."""

    def __init__(self, app: WatchApp, pilot: Pilot[None]) -> None:
        self.app = app
        self._pilot = pilot

    @property
    def lines(self) -> list[str]:
        return rows(self.svg)

    @property
    def svg(self) -> str:
        return self.app.export_screenshot()

    def line(self, text: str) -> str:
        """The first line with this text."""
        return next(line for line in self.lines if text in line)

    def projects(self) -> list[str]:
        """The projects of the overview in order."""
        return [word for line in self.lines for word in line.split() if word.startswith("~/")]

    async def until(self, fits: Callable[[list[str]], object]) -> list[str]:
        """The lines, once they satisfy a condition."""
        for _ in range(MAX_CHECKS):
            lines = self.lines
            if fits(lines):
                return lines
            await self._pilot.pause(0.05)
        raise AssertionError("\n".join(self.lines))

    async def shows(self, text: str) -> str:
        """The line with this text, once it appears."""
        lines = await self.until(lambda lines: any(text in line for line in lines))
        return next(line for line in lines if text in line)

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)
        await self._pilot.pause()

    async def pause(self, seconds: float) -> None:
        await self._pilot.pause(seconds)

    async def write(self, text: str) -> None:
        await self.press(*("space" if letter == " " else letter for letter in text))

    async def click(self, line: int) -> None:
        await self._pilot.click(offset=(10, line))
        await self._pilot.pause()

    async def resize(self, columns: int, lines: int) -> None:
        await self._pilot.resize_terminal(columns, lines)


def drive(
    app: WatchApp, test: Callable[[AppDriver], Awaitable[None]], size: tuple[int, int] = (80, 24)
) -> None:
    """Run a test on the application without a terminal."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await test(AppDriver(app, pilot))

    asyncio.run(run())
