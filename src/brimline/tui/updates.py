"""Follow all sessions: by the daemon's stream, or by polling the transcripts without a daemon."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Literal, TypeAlias

import msgspec

from brimline.api.client.stream import DaemonClient, ServerEvent
from brimline.errors import BrimlineError, MalformedJson, NotRunning
from brimline.tui.api_types import WatchedSession, decode_change, decode_view, decode_views

ConnectionState: TypeAlias = Literal["connecting", "live", "lost", "files"]
ReadFiles: TypeAlias = Callable[[], Awaitable[list[WatchedSession]]]


class Connection(msgspec.Struct, frozen=True):
    """Where the sessions come from now, and what is wrong, if anything."""

    state: ConnectionState
    problem: str | None = None


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
