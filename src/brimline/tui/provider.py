"""The data of the terminal UI: from the daemon, or from the transcripts without one."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Literal, TypeAlias

import msgspec

from brimline.api.client.request import session_path
from brimline.api.client.stream import DaemonClient, ServerEvent
from brimline.errors import BrimlineError, MalformedJson, NotRunning
from brimline.files.foreign_json import decode_json
from brimline.sessions.ledger.explain import Explanation
from brimline.tui.api_types import (
    SessionDetail,
    WatchedSession,
    decode_change,
    decode_timeline,
    decode_view,
    decode_views,
)
from brimline.tui.files import TranscriptFiles

ConnectionState: TypeAlias = Literal["connecting", "live", "lost", "files"]
ReadFiles: TypeAlias = Callable[[], Awaitable[list[WatchedSession]]]


class Connection(msgspec.Struct, frozen=True):
    """Where the sessions come from now, and what is wrong, if anything."""

    state: ConnectionState
    reason: str | None = None


class AllSessions(msgspec.Struct, frozen=True):
    views: list[WatchedSession]
    connection: Connection


class SessionChanged(msgspec.Struct, frozen=True):
    view: WatchedSession


Update: TypeAlias = AllSessions | SessionChanged | Connection


class Intervals(msgspec.Struct, frozen=True):
    """A lost daemon is tried `tries` times, every `retry_s`; then files are read every `files_s`.

    A stream is lost after `silence_s`: the daemon sends a heartbeat every 15 s.
    """

    retry_s: float = 1.0
    tries: int = 3
    files_s: float = 5.0
    silence_s: float = 40.0


async def follow_sessions(
    daemon: DaemonClient | None, read: ReadFiles, intervals: Intervals | None = None
) -> AsyncGenerator[Update, None]:
    """All sessions, then every change, for ever; without a daemon from the files alone."""
    intervals = intervals or Intervals()
    tries = 0
    while True:
        if daemon is not None:
            try:
                async with contextlib.aclosing(_follow_daemon(daemon, intervals)) as updates:
                    async for update in updates:
                        tries = intervals.tries
                        yield update
            except NotRunning as error:
                if tries:
                    yield Connection("lost", str(error).partition("\n")[0])
        if daemon is not None and tries:
            tries -= 1
            await asyncio.sleep(intervals.retry_s)
        else:
            yield await _read_files(read)
            await asyncio.sleep(intervals.files_s)


async def _follow_daemon(
    daemon: DaemonClient, intervals: Intervals
) -> AsyncGenerator[Update, None]:
    """All sessions first, which removes deleted ones; then the stream, which sends them again."""
    answer = await daemon.request("GET", "/v1/sessions")
    try:
        every = decode_views(answer.body)
    except MalformedJson as error:
        raise NotRunning(f"unexpected answer, not from a Brimline daemon: {error}") from error
    yield AllSessions(every, Connection("live"))
    views = {view.session.id: view for view in every}
    async with contextlib.aclosing(daemon.stream("/v1/stream", intervals.silence_s)) as events:
        async for event in events:
            view = _apply_event(event, views)
            if view is not None:
                views[view.session.id] = view
                yield SessionChanged(view)


def _apply_event(event: ServerEvent, views: Mapping[str, WatchedSession]) -> WatchedSession | None:
    """The session after an event; None if the event is unknown or cannot be decoded."""
    match event.kind:
        case "session":
            return decode_view(event.data)
        case "change":
            return decode_change(event.data, views)
        case _:
            return None


async def _read_files(read: ReadFiles) -> Update:
    try:
        return AllSessions(await read(), Connection("files"))
    except (BrimlineError, OSError) as error:
        return Connection("files", str(error).partition("\n")[0])


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
            return SessionDetail(view, reason=str(error).partition("\n")[0])

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
        return SessionDetail(view, reason=refusal)
    return SessionDetail(view, decode_timeline(timeline.body, messages.body))


async def _request_explanation(daemon: DaemonClient, view: WatchedSession) -> Explanation:
    answer = await daemon.request("GET", f"{session_path(view.session.id)}/explanation")
    if answer.refusal:
        return _unexplained(view, answer.refusal)
    return decode_json(answer.body, Explanation)


def _unexplained(view: WatchedSession, reason: str) -> Explanation:
    return Explanation(view.session.agent, view.session.id, (), [], reason)
