"""The stream of session changes, as server-sent events."""

from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from brimline.api.broadcast import ChangeBroadcaster
from brimline.api.openapi import Endpoint
from brimline.api.responses import read_choice
from brimline.api.session_cache import SessionCache
from brimline.api.session_change import TrendChange
from brimline.api.views import SessionView, ThreadView
from brimline.store.rows import SessionRow

MEDIA_TYPE = "text/event-stream"
MAX_MARK_DIGITS = 18
STARTS = ("day", "now")  # of a stream without Last-Event-ID

HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
CONNECTED = b": connected\nretry: 1000\n\n"


def _partial(row: type[msgspec.Struct], **changed: Any) -> Any:
    """Return the type of an object with some fields of a row; `changed` gives other types."""
    types = {field.name: field.type for field in msgspec.structs.fields(row)} | changed
    fields = [(name, kind | msgspec.UnsetType, msgspec.UNSET) for name, kind in types.items()]
    return msgspec.defstruct(f"{row.__name__}Change", fields, kw_only=True)


# What `session_change.find_change` returns, for the OpenAPI document.
SessionChange: Any = msgspec.defstruct(
    "SessionChange",
    [("id", str)],
    bases=(
        _partial(
            SessionView,
            session=_partial(SessionRow),
            threads=dict[str, _partial(ThreadView)] | list[ThreadView],
            trend=TrendChange,
        ),
    ),
    kw_only=True,
)


class StreamRoutes:
    """The route of the stream.

    It sends `session` events with whole views of what changed since Last-Event-ID, or of the last
    day, and then `change` events with the fields that changed (`session_change`). With `from=now`
    it begins with the changes: its client loads the sessions that it shows.
    """

    endpoints = (
        Endpoint("GET", "/v1/stream", "stream", "Stream the changes of sessions.", str,
                 media=MEDIA_TYPE, events={"session": SessionView, "change": SessionChange},
                 query=("from",)),
    )  # fmt: skip

    def __init__(self, cache: SessionCache, broadcaster: ChangeBroadcaster) -> None:
        self._cache = cache
        self._broadcaster = broadcaster

    async def stream(self, request: Request) -> Response:
        """Open a stream; it resumes from Last-Event-ID."""
        start = read_choice(request, "from", STARTS)
        await self._cache.refresh()
        after = self._resume_mark(request.headers.get("last-event-id", ""))
        if start == "now":
            after = after or self._cache.mark
        return StreamingResponse(self._events(after), media_type=MEDIA_TYPE, headers=HEADERS)

    def _resume_mark(self, last_event_id: str) -> int:
        """Return the mark to resume from; 0, the start, if it is from an earlier store."""
        is_mark = last_event_id.isdecimal() and len(last_event_id) <= MAX_MARK_DIGITS
        mark = int(last_event_id) if is_mark else 0
        return mark if mark <= self._cache.mark else 0

    async def _events(self, after: int) -> AsyncGenerator[bytes, None]:
        yield CONNECTED
        async for data in self._broadcaster.follow(after):
            yield data
