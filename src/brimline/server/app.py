"""The HTTP API on loopback."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from brimline.errors import BrimlineError
from brimline.handoff.document import take
from brimline.hooks.frame import Request as HookRequest
from brimline.inbox import Message
from brimline.monitor.monitor import Monitor
from brimline.server.desk import Desk
from brimline.server.guard import Guard
from brimline.server.legacy import legacy_routes
from brimline.server.openapi import Endpoint, document
from brimline.server.views import (
    HandoffView,
    Health,
    NewHandoff,
    NewMessage,
    Problem,
    Sent,
    SessionView,
    Status,
    Timeline,
    messages,
    session_view,
    timeline,
)
from brimline.store.base import HandoffRow, SessionRow, Store, ThreadRow

ONE = "/v1/sessions/{id}"
EVENTS = "text/event-stream"

BodyT = TypeVar("BodyT")
Handler = Callable[[Request], Awaitable[Response]]

ENDPOINTS = (
    Endpoint("GET", "/healthz", "health", "That it lives.", Health),
    Endpoint("GET", "/v1/daemon", "daemon", "What the daemon says of itself.", Status),
    Endpoint("DELETE", "/v1/daemon", "end", "End the daemon.", Health),
    Endpoint("GET", "/v1/sessions", "sessions", "Every session.", list[SessionView]),
    Endpoint("GET", f"{ONE}", "session", "One session.", SessionView, found=True),
    Endpoint("GET", f"{ONE}/context", "context", "Its readings.", list[ThreadRow], found=True),
    Endpoint("GET", f"{ONE}/timeline", "timeline", "What happened.", Timeline, found=True),
    Endpoint("GET", f"{ONE}/messages", "messages", "Its messages.", list[Message], found=True),
    Endpoint("POST", f"{ONE}/messages", "send", "Queue a message.", Sent, NewMessage, 201),
    Endpoint("GET", f"{ONE}/handoff", "handoffs", "Its documents.", HandoffView, found=True),
    Endpoint("POST", f"{ONE}/handoff", "hand_over", "Hand one over.", HandoffRow, NewHandoff, 201),
    Endpoint("GET", "/v1/stream", "stream", "Sessions as they change.", str, media=EVENTS),
)

STREAM_EVERY = 0.2
"""How often the stream looks for what changed; a change is out well within a second."""


def json(value: object, status: int = 200) -> Response:
    """A value as a JSON answer."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def problem(status: int, error: str, hint: str | None = None) -> Response:
    """Why a request was not answered."""
    return json(Problem(error, hint), status)


class Api:
    """The routes, on a store and a monitor."""

    def __init__(
        self,
        store: Store,
        monitor: Monitor,
        desk: Desk,
        status: Callable[[], Status],
        stop: Callable[[], None],
    ) -> None:
        self._store = store
        self._monitor = monitor
        self._desk = desk
        self._status = status
        self._stop = stop

    def app(self) -> Starlette:
        """The application, guarded."""
        routes = [
            Route("/openapi.json", self.openapi),
            *(self._route(endpoint) for endpoint in ENDPOINTS),
            *legacy_routes(self._store, self._monitor),
            Route("/hooks/{agent}", self.hook, methods=["POST"]),
        ]
        made = Starlette(routes=routes, exception_handlers={BrimlineError: _told})
        made.add_middleware(Guard)
        return made

    def _route(self, endpoint: Endpoint) -> Route:
        handler = getattr(self, endpoint.handler)
        return Route(
            endpoint.path,
            self._found(handler) if endpoint.found else handler,
            methods=[endpoint.method],
        )

    async def openapi(self, request: Request) -> Response:
        """What is offered here."""
        return json(document(ENDPOINTS))

    async def health(self, request: Request) -> Response:
        """That it lives."""
        return json(Health("ok"))

    async def daemon(self, request: Request) -> Response:
        """What the daemon says of itself."""
        return json(self._status())

    async def end(self, request: Request) -> Response:
        """End the daemon, after what is under way."""
        self._stop()
        return json(Health("stopping"))

    async def hook(self, request: Request) -> Response:
        """A hook that the client posts itself; its answer is taken to be passed on."""
        told = HookRequest(
            kind="hook",
            agent=request.path_params["agent"],
            id=f"{time.time_ns()}-0",
            pid=0,
            env={},
            body=await request.body(),
        )
        answer = await self._desk.take(told)
        await self._desk.done(answer, passed_on=True)
        return Response(answer.text or b"{}", media_type="application/json")

    async def sessions(self, request: Request) -> Response:
        """Every session with its threads, the last seen first."""
        rows = await self._store.sessions()
        return json([await session_view(self._store, row) for row in rows])

    async def session(self, request: Request, row: SessionRow) -> Response:
        """One session."""
        return json(await session_view(self._store, row))

    async def context(self, request: Request, row: SessionRow) -> Response:
        """The readings of one session."""
        return json(await self._store.threads(row.id))

    async def timeline(self, request: Request, row: SessionRow) -> Response:
        """The calls of one session, and what was said."""
        return json(await timeline(self._store, row.id))

    async def messages(self, request: Request, row: SessionRow) -> Response:
        """The messages of one session."""
        return json(await messages(self._store, row.id))

    async def send(self, request: Request) -> Response:
        """Queue a message; the session may be one that was not heard of yet."""
        told = await _body(request, NewMessage)
        if isinstance(told, Response):
            return told
        urgency = "urgent" if told.urgent else "sequential"
        id = await self._monitor.send(request.path_params["id"], told.text, urgency, told.sender)
        return json(Sent(id), 201)

    async def handoffs(self, request: Request, row: SessionRow) -> Response:
        """The documents of one session."""
        return json(HandoffView(await self._store.handoffs(row.id)))

    async def hand_over(self, request: Request) -> Response:
        """Read a document, once, and keep it."""
        told = await _body(request, NewHandoff)
        if isinstance(told, Response):
            return told
        document = take(told.path)
        kept = await self._monitor.hand_over(request.path_params["id"], document, told.author)
        return json(kept, 201)

    async def stream(self, request: Request) -> Response:
        """Sessions as they change, as server-sent events; goes on from Last-Event-ID."""
        last = request.headers.get("last-event-id", "0")
        after = int(last) if last.isdigit() else 0
        headers = {"cache-control": "no-store"}
        return StreamingResponse(self._changes(request, after), media_type=EVENTS, headers=headers)

    async def _changes(self, request: Request, after: int) -> AsyncIterator[bytes]:
        yield b": connected\n\n"
        while not await request.is_disconnected():
            for mark, id in await self._store.changes(after):
                after = mark
                row = await self._store.session(id)
                if row is not None:
                    view = msgspec.json.encode(await session_view(self._store, row))
                    yield b"id: %d\nevent: session\ndata: %s\n\n" % (mark, view)
            await asyncio.sleep(STREAM_EVERY)

    def _found(self, handler: Callable[[Request, SessionRow], Awaitable[Response]]) -> Handler:
        async def answer(request: Request) -> Response:
            id = request.path_params["id"]
            row = await self._store.session(id)
            if row is None:
                return problem(404, f"no session {id!r}", "GET /v1/sessions lists them.")
            return await handler(request, row)

        return answer


async def _body(request: Request, kind: type[BodyT]) -> BodyT | Response:
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except msgspec.DecodeError as error:
        return problem(422, str(error))


async def _told(request: Request, error: Exception) -> Response:
    hint = error.hint if isinstance(error, BrimlineError) else None
    return problem(422, str(error).partition("\n")[0], hint)
