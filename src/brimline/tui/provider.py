"""Where the terminal has everything from: the daemon, and the agents' files without one."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from urllib.parse import quote

import msgspec

from brimline.errors import BrimlineError
from brimline.tui import api_types
from brimline.tui.api_types import Detail, View
from brimline.tui.daemon_client import Daemon
from brimline.tui.files import Files
from brimline.tui.updates import News, Pace, follow


class Origin:
    """What there is, what changes, one session's detail, and the way back: a message."""

    def __init__(
        self,
        daemon: Daemon | None,
        files: Files,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._daemon = daemon
        self._files = files
        self._clock = clock
        self.pace = pace or Pace()

    def news(self) -> AsyncIterator[News]:
        """All sessions, and then whatever changes."""
        return follow(self._daemon, self._read, self.pace)

    async def detail(self, view: View, live: bool) -> Detail:
        """A session with what happened in it, or why that cannot be told."""
        try:
            if live and self._daemon is not None:
                return await _asked(self._daemon, view)
            return await asyncio.to_thread(self._files.detail, view)
        except (BrimlineError, OSError, msgspec.DecodeError) as error:
            return Detail(view, problem=str(error).partition("\n")[0])

    async def send(self, session: str, text: str, urgent: bool) -> str | None:
        """Queue a message; why that was not done, or None."""
        if self._daemon is None:
            return "no daemon runs that could deliver it: `brimline serve --background` starts one"
        body = msgspec.json.encode({"text": text, "urgent": urgent})
        try:
            answer = await self._daemon.ask("POST", f"{_path(session)}/messages", body)
        except BrimlineError as error:
            return str(error).replace("\n", ": ")
        return answer.refusal

    async def _read(self) -> list[View]:
        return await asyncio.to_thread(self._files.views, self._clock())


async def _asked(daemon: Daemon, view: View) -> Detail:
    path = _path(view.session.id)
    timeline = await daemon.ask("GET", f"{path}/timeline")
    messages = await daemon.ask("GET", f"{path}/messages")
    if refusal := timeline.refusal or messages.refusal:
        return Detail(view, problem=refusal)
    return Detail(view, api_types.timeline(timeline.body, messages.body))


def _path(session: str) -> str:
    return f"/v1/sessions/{quote(session, safe='')}"
