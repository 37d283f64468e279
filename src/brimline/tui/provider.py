"""The data of the terminal UI: from the daemon, or from the transcripts without one."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import msgspec

from brimline.api.client.request import session_path
from brimline.api.client.stream import DaemonClient
from brimline.errors import BrimlineError
from brimline.files.foreign_json import decode_json
from brimline.sessions.ledger.explain import Explanation
from brimline.tui.api_types import SessionDetail, WatchedSession, decode_timeline
from brimline.tui.files import TranscriptFiles
from brimline.tui.updates import Intervals, Update, follow_sessions


class SessionProvider:
    """Gives all sessions, their changes and one session's detail; sends messages."""

    def __init__(
        self,
        daemon: DaemonClient | None,
        files: TranscriptFiles,
        intervals: Intervals | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._daemon = daemon
        self._files = files
        self._clock = clock
        self.intervals = intervals or Intervals()

    def updates(self) -> AsyncIterator[Update]:
        return follow_sessions(self._daemon, self._read_views, self.intervals)

    async def load_detail(self, view: WatchedSession, live: bool) -> SessionDetail:
        """A session with its timeline, or with the reason why that cannot be loaded."""
        try:
            if live and self._daemon is not None:
                return await _request_detail(self._daemon, view)
            return await asyncio.to_thread(self._files.read_detail, view)
        except (BrimlineError, OSError) as error:
            return SessionDetail(view, problem=str(error).partition("\n")[0])

    async def load_explanation(self, view: WatchedSession, live: bool) -> Explanation:
        """What fills a session's contexts, or the reason why that is unknown."""
        try:
            if live and self._daemon is not None:
                return await _request_explanation(self._daemon, view)
            return await asyncio.to_thread(self._files.read_explanation, view)
        except (BrimlineError, OSError) as error:
            return _unexplained(view, str(error).partition("\n")[0])

    async def send_message(self, session: str, text: str, urgent: bool) -> str | None:
        """Queue a message; returns why that failed, or None."""
        if self._daemon is None:
            return "the daemon is not running: start it with `brimline serve --background`"
        body = msgspec.json.encode({"text": text, "urgent": urgent})
        try:
            answer = await self._daemon.request("POST", session_path(session, "/messages"), body)
        except BrimlineError as error:
            return str(error).replace("\n", ": ")
        return answer.refusal

    async def _read_views(self) -> list[WatchedSession]:
        return await asyncio.to_thread(self._files.read_views, self._clock())


async def _request_detail(daemon: DaemonClient, view: WatchedSession) -> SessionDetail:
    path = session_path(view.session.id)
    timeline = await daemon.request("GET", f"{path}/timeline")
    messages = await daemon.request("GET", f"{path}/messages")
    if refusal := timeline.refusal or messages.refusal:
        return SessionDetail(view, problem=refusal)
    return SessionDetail(view, decode_timeline(timeline.body, messages.body))


async def _request_explanation(daemon: DaemonClient, view: WatchedSession) -> Explanation:
    answer = await daemon.request("GET", f"{session_path(view.session.id)}/explanation")
    if answer.refusal:
        return _unexplained(view, answer.refusal)
    return decode_json(answer.body, Explanation)


def _unexplained(view: WatchedSession, problem: str) -> Explanation:
    return Explanation(view.session.agent, view.session.id, (), [], problem)
