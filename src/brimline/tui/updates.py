"""Following all sessions: by the daemon's stream, or by the agents' files where there is none."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Literal, TypeAlias

import msgspec

from brimline.errors import BrimlineError, NotRunning
from brimline.tui.api_types import LiveViews, View
from brimline.tui.daemon_client import Daemon, Event

LinkState: TypeAlias = Literal["connecting", "live", "lost", "files"]
ReadFiles: TypeAlias = Callable[[], Awaitable[list[View]]]


class Link(msgspec.Struct, frozen=True):
    """Where the sessions come from at this moment, and what is wrong with it."""

    state: LinkState
    problem: str | None = None


class Everything(msgspec.Struct, frozen=True):
    """All sessions there are."""

    views: list[View]
    link: Link


class Changed(msgspec.Struct, frozen=True):
    """One session as it is now."""

    view: View


News: TypeAlias = Everything | Changed | Link


class Pace(msgspec.Struct, frozen=True):
    """How often: a daemon that was lost is tried so often before the files are read; in seconds.

    `silence` is how long a stream may say nothing: the daemon gives a sign of life every 15.
    """

    retry: float = 1.0
    tries: int = 3
    files: float = 5.0
    silence: float = 40.0


async def follow(
    daemon: Daemon | None, read: ReadFiles, pace: Pace | None = None
) -> AsyncGenerator[News, None]:
    """What is there, and then whatever changes, for ever; `daemon` None: the files alone."""
    pace = pace or Pace()
    tries = 0
    while True:
        if daemon is not None:
            try:
                async with contextlib.aclosing(_live(daemon, pace)) as news:
                    async for one in news:
                        tries = pace.tries
                        yield one
            except NotRunning as error:
                if tries:
                    yield Link("lost", str(error).partition("\n")[0])
        if daemon is not None and tries:
            tries -= 1
            await asyncio.sleep(pace.retry)
        else:
            yield await _from_files(read)
            await asyncio.sleep(pace.files)


async def _live(daemon: Daemon, pace: Pace) -> AsyncGenerator[News, None]:
    """All sessions first, so that forgotten ones go; then the stream, which sends them again."""
    answer, sessions = await daemon.ask("GET", "/v1/sessions"), LiveViews()
    try:
        yield Everything(sessions.take_all(answer.body), Link("live"))
    except msgspec.DecodeError as error:
        raise NotRunning(f"something that is no daemon of ours: {error}") from error
    async with contextlib.aclosing(daemon.stream("/v1/stream", pace.silence)) as events:
        async for event in events:
            view = _view_after(event, sessions)
            if view is not None:
                yield Changed(view)


def _view_after(event: Event, sessions: LiveViews) -> View | None:
    """The session that an event is about; None for an unknown event, or one that is unreadable."""
    match event.kind:
        case "session":
            return sessions.take(event.data)
        case "change":
            return sessions.change(event.data)
        case _:
            return None


async def _from_files(read: ReadFiles) -> News:
    try:
        return Everything(await read(), Link("files"))
    except (BrimlineError, OSError) as error:
        return Link("files", str(error).partition("\n")[0])
