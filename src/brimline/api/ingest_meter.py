"""Counts the requests of the scope `ingest`: telemetry, events of programs, uplink batches."""

from collections import Counter
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brimline.api.responses import Routes


class IngestCounts:
    """Requests and bytes since the start, by path; `pending` requests are being answered."""

    def __init__(self) -> None:
        self.requests = Counter[tuple[str, str]]()  # by path and status, as `2xx`
        self.received_bytes = Counter[str]()  # by path
        self.pending = 0


class IngestMeter:
    """A middleware that counts requests to some paths."""

    def __init__(self, app: ASGIApp, counts: IngestCounts, paths: Iterable[str]) -> None:
        self._app, self._counts, self._paths = app, counts, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
            return
        counts, path, status = self._counts, scope["path"], "5xx"

        async def count_bytes() -> Message:
            message = await receive()
            counts.received_bytes[path] += len(message.get("body", b""))
            return message

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = f"{message['status'] // 100}xx"
            await send(message)

        counts.pending += 1
        try:
            await self._app(scope, count_bytes, note_status)
        finally:
            counts.pending -= 1
            counts.requests[path, status] += 1


def ingest_paths(parts: Iterable[Routes]) -> list[str]:
    """Return the paths of the endpoints with the scope `ingest`."""
    endpoints = (each for part in parts for each in part.endpoints)
    paths = (each.path for each in endpoints if each.needed_scope == "ingest")
    return [path for path in paths if "{" not in path]  # hooks are counted apart
