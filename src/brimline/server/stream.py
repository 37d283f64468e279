"""Sessions as they change, as server-sent events."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from brimline.server.openapi import Endpoint
from brimline.server.views import Views
from brimline.store.base import Store

EVENTS = "text/event-stream"
EVERY = 0.2
"""How often, in seconds, it is looked for what changed; a change is out well within a second."""

HEARTBEAT = 15.0
"""After so many seconds of silence a line says that the connection lives."""

DIGITS = 18
"""No store gives a mark that is longer."""

LATELY = 24 * 3_600.0
"""Who does not say where to go on from is told of the sessions of so many seconds."""


class Stream:
    """The route of the stream; it ends when the daemon is `stopping`."""

    endpoints = (
        Endpoint("GET", "/v1/stream", "stream", "Sessions as they change.", str, media=EVENTS),
    )

    def __init__(
        self,
        store: Store,
        views: Views,
        stopping: Callable[[], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._views = views
        self._stopping = stopping
        self._clock = clock

    async def stream(self, request: Request) -> Response:
        """Sessions as they change; goes on from Last-Event-ID."""
        after = await self._after(request.headers.get("last-event-id", ""))
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._changes(request, after), media_type=EVENTS, headers=headers)

    async def _after(self, told: str) -> int:
        """The mark to go on from; 0, the start, where it is none that this store has given.

        A page may have been told by a store that was put aside since.
        """
        mark = int(told) if told.isdecimal() and len(told) <= DIGITS else 0
        given = await self._store.changes() if mark else []
        return mark if given and mark <= given[-1][0] else 0

    async def _changes(self, request: Request, after: int) -> AsyncIterator[bytes]:
        yield b": connected\nretry: 1000\n\n"
        said, since = time.monotonic(), 0.0 if after else self._clock() - LATELY
        while not (self._stopping() or await request.is_disconnected()):
            for mark, id in await self._store.changes(after):
                after = mark
                row = await self._store.session(id)
                if row is not None and row.seen_at >= since:
                    view = msgspec.json.encode(await self._views.one(row))
                    yield b"id: %d\nevent: session\ndata: %s\n\n" % (mark, view)
                    said = time.monotonic()
            if time.monotonic() - said > HEARTBEAT:
                said = time.monotonic()
                yield b": alive\n\n"
            await asyncio.sleep(EVERY)
