"""The HTTP API on loopback: its parts, put together and guarded."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from brimline.errors import BrimlineError
from brimline.hooks.frame import Request as HookRequest
from brimline.server.answers import (
    Refused,
    Routes,
    failed,
    json,
    no_session,
    not_offered,
    refused,
)
from brimline.server.bodies import Health, Status
from brimline.server.desk import Desk
from brimline.server.guard import Guard, Limit
from brimline.server.history import Histories
from brimline.server.legacy import Legacy
from brimline.server.openapi import Endpoint, document
from brimline.server.sessions import Sessions
from brimline.server.stream import Stream
from brimline.store.base import Store
from brimline.store.rows import SessionRow

Handler = Callable[[Request], Awaitable[Response]]


class Running:
    """The routes of the daemon itself."""

    endpoints = (
        Endpoint("GET", "/healthz", "health", "That it lives.", Health),
        Endpoint("GET", "/v1/daemon", "daemon", "What the daemon says of itself.", Status),
        Endpoint("DELETE", "/v1/daemon", "end", "End the daemon.", Health),
    )

    def __init__(self, status: Callable[[], Status], stop: Callable[[], None]) -> None:
        self._status = status
        self._stop = stop

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


class Posted:
    """Hooks that a client posts itself; an answer is passed on where the client still waits."""

    endpoints = (
        Endpoint("POST", "/hooks/{agent}", "hook", "Answer a hook, as its agent takes it.",
                 dict[str, Any], dict[str, Any]),
    )  # fmt: skip

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def hook(self, request: Request) -> Response:
        """Answer one."""
        told = HookRequest(
            kind="hook",
            agent=request.path_params["agent"],
            id=f"{time.time_ns()}-0",
            pid=0,
            env={},
            body=await request.body(),
        )
        answer = await self._desk.take(told)
        if answer.matters:
            await self._desk.done(answer, passed_on=not await request.is_disconnected())
        return Response(answer.text or b"{}", media_type="application/json")


ENDPOINTS: tuple[Endpoint, ...] = (
    *Running.endpoints,
    *Sessions.endpoints,
    *Histories.endpoints,
    *Stream.endpoints,
    *Legacy.endpoints,
    *Posted.endpoints,
)
"""All that is offered."""


def application(store: Store, parts: Sequence[Routes], others: Sequence[Route]) -> Starlette:
    """The application: parts of the API and routes beside it, behind the guard."""

    async def openapi(request: Request) -> Response:
        return json(document([each for part in parts for each in part.endpoints]))

    routes = [
        Route("/openapi.json", openapi),
        *(_route(store, part, each) for part in parts for each in part.endpoints),
        *others,
    ]
    handlers = {
        BrimlineError: refused,
        Refused: refused,
        HTTPException: not_offered,
        Exception: failed,
    }
    made = Starlette(routes=routes, exception_handlers=handlers)
    made.add_middleware(Limit)
    made.add_middleware(Guard)
    return made


def _route(store: Store, part: Routes, endpoint: Endpoint) -> Route:
    handler = getattr(part, endpoint.handler)
    made = _found(store, handler) if endpoint.found else handler
    path = endpoint.path.replace("{id}", "{id:path}")  # an agent's own ids may have slashes
    return Route(path, made, methods=[endpoint.method])


def _found(store: Store, handler: Callable[[Request, SessionRow], Awaitable[Response]]) -> Handler:
    async def answer(request: Request) -> Response:
        id = request.path_params["id"]
        row = await store.session(id)
        if row is None:
            raise no_session(id)
        return await handler(request, row)

    return answer
