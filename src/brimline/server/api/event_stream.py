"""Sessions as they change, as server-sent events."""

from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from brimline.server.api.broadcast import ChangeBroadcaster
from brimline.server.api.openapi import Endpoint
from brimline.server.api.session_cache import SessionCache

MEDIA_TYPE = "text/event-stream"
MAX_MARK_DIGITS = 18
"""No store gives a longer mark."""

HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
CONNECTED = b": connected\nretry: 1000\n\n"


class Stream:
    """The route of the stream.

    It sends `session` events with whole views of what changed since Last-Event-ID, or of the last
    day, and then `change` events with the fields that changed (`session_change`).
    """

    endpoints = (
        Endpoint("GET", "/v1/stream", "stream", "Sessions as they change.", str, media=MEDIA_TYPE),
    )

    def __init__(self, cache: SessionCache, broadcaster: ChangeBroadcaster) -> None:
        self._cache = cache
        self._broadcaster = broadcaster

    async def stream(self, request: Request) -> Response:
        """Open a stream; it resumes from Last-Event-ID."""
        await self._cache.refresh()
        after = self._resume_mark(request.headers.get("last-event-id", ""))
        return StreamingResponse(self._events(after), media_type=MEDIA_TYPE, headers=HEADERS)

    def _resume_mark(self, last_event_id: str) -> int:
        """The mark to resume from; 0, the start, if this store has not given it.

        A page may have it from a store that was moved aside since.
        """
        is_mark = last_event_id.isdecimal() and len(last_event_id) <= MAX_MARK_DIGITS
        mark = int(last_event_id) if is_mark else 0
        return mark if mark <= self._cache.mark else 0

    async def _events(self, after: int) -> AsyncGenerator[bytes, None]:
        yield CONNECTED
        async for data in self._broadcaster.follow(after):
            yield data
