"""The HTTP API on loopback: its parts, put together and guarded."""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from brimline.errors import BrimlineError
from brimline.hooks.protocol import Request as HookRequest
from brimline.server.api.access import LINK_PATH, AccessControl
from brimline.server.api.event_stream import Stream
from brimline.server.api.history import Histories
from brimline.server.api.legacy_endpoints import Legacy
from brimline.server.api.load_limit import LoadLimit
from brimline.server.api.middleware import BodyLimit, RequestGuard, tcp_port
from brimline.server.api.openapi import Endpoint, document
from brimline.server.api.responses import (
    Refused,
    Routes,
    failed,
    json,
    no_session,
    not_offered,
    refused,
)
from brimline.server.api.schemas import DaemonStatus, Health, PageLink
from brimline.server.api.sessions import Sessions
from brimline.server.api.static import EXPLANATION_HEADERS, USED_LINK, explanation
from brimline.server.hooks.dispatcher import HookDispatcher
from brimline.server.hooks.hook_socket import record_delivery
from brimline.server.retry import RateLimitedLog
from brimline.store.base import Store
from brimline.store.rows import SessionRow

Handler = Callable[[Request], Awaitable[Response]]

UNIX_ONLY = "forbidden: this is answered over the daemon's Unix socket alone"


class Running:
    """The routes of the daemon itself."""

    endpoints = (
        Endpoint("GET", "/healthz", "health", "That it lives.", Health),
        Endpoint("GET", "/v1/daemon", "daemon", "What the daemon says of itself.", DaemonStatus),
        Endpoint("DELETE", "/v1/daemon", "end", "End the daemon.", Health, unix_only=True),
        Endpoint("POST", "/v1/daemon/link", "link", "Make a link that opens the page once.",
                 PageLink, status=201, unix_only=True),
    )  # fmt: skip

    def __init__(
        self, status: Callable[[], DaemonStatus], stop: Callable[[], None], access: AccessControl
    ) -> None:
        self._status = status
        self._stop = stop
        self._access = access

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

    async def link(self, request: Request) -> Response:
        """Make a link that opens the page once."""
        return json(PageLink(self._access.page_link()), 201)


class PageDoor:
    """Where a link leads: it gives a browser our cookie, once, and sends it on to the page."""

    def __init__(self, access: AccessControl) -> None:
        self._access = access

    def routes(self) -> list[Route]:
        """The one route."""
        return [Route(LINK_PATH, self.open)]

    async def open(self, request: Request) -> Response:
        """Let a browser in; one that is in already may come by a link that was used."""
        cookies = request.headers.get("cookie", "").encode("latin-1")
        if self._access.links.redeem(request.query_params.get("code", "")):
            headers = {"set-cookie": self._access.cookie()}
        elif self._access.has_cookie(cookies):
            headers = {}
        else:
            answer = Response(explanation(USED_LINK), 401)
            answer.raw_headers.extend(EXPLANATION_HEADERS)
            return answer
        headers |= {"cache-control": "no-store", "referrer-policy": "no-referrer"}
        return RedirectResponse("/", 303, headers)


class Posted:
    """Hooks that a client posts itself; an answer is passed on where the client still waits.

    It is marked as delivered when it was sent: a daemon that dies before has it sent again.
    """

    endpoints = (
        Endpoint("POST", "/hooks/{agent}", "hook", "Answer a hook, as its agent takes it.",
                 dict[str, Any], dict[str, Any]),
    )  # fmt: skip

    def __init__(self, desk: HookDispatcher) -> None:
        self._desk = desk
        self._troubles = RateLimitedLog()

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
        answer = await self._desk.handle(told)
        after = None
        if answer.matters:
            passed_on = not await request.is_disconnected()
            after = BackgroundTask(record_delivery, self._desk, answer, passed_on, self._troubles)
        text = answer.text or b"{}"
        return Response(text, media_type="application/json", background=after)


ENDPOINTS: tuple[Endpoint, ...] = (
    *Running.endpoints,
    *Sessions.endpoints,
    *Histories.endpoints,
    *Stream.endpoints,
    *Legacy.endpoints,
    *Posted.endpoints,
)
"""All that is offered."""


def application(
    store: Store,
    parts: Sequence[Routes],
    others: Sequence[Route],
    access: AccessControl,
    open_paths: Sequence[str] = (),
) -> Starlette:
    """The application: parts of the API and routes beside it, behind the guard.

    What begins with one of `open_paths` needs no secret.
    """

    async def openapi(request: Request) -> Response:
        return json(document([each for part in parts for each in part.endpoints]))

    routes = [
        Route("/openapi.json", openapi),
        *(_route(store, part, each) for part in parts for each in part.endpoints),
        *PageDoor(access).routes(),
        *others,
    ]
    handlers = {
        BrimlineError: refused,
        Refused: refused,
        HTTPException: not_offered,
        Exception: failed,
    }
    made = Starlette(routes=routes, exception_handlers=handlers)
    made.add_middleware(BodyLimit)
    made.add_middleware(LoadLimit)
    made.add_middleware(RequestGuard, access=access, open_paths=open_paths)
    return made


def _route(store: Store, part: Routes, endpoint: Endpoint) -> Route:
    handler = getattr(part, endpoint.handler)
    made = _found(store, handler) if endpoint.found else handler
    made = _unix_only(made) if endpoint.unix_only else made
    path = endpoint.path.replace("{id}", "{id:path}")  # an agent's own ids may have slashes
    return Route(path, made, methods=[endpoint.method])


def _unix_only(handler: Handler) -> Handler:
    @wraps(handler)
    async def answer(request: Request) -> Response:
        if tcp_port(request.scope) is not None:
            raise Refused(403, UNIX_ONLY, "Use the command line, or the socket `http.sock`.")
        return await handler(request)

    return answer


def _found(store: Store, handler: Callable[[Request, SessionRow], Awaitable[Response]]) -> Handler:
    async def answer(request: Request) -> Response:
        id = request.path_params["id"]
        row = await store.session(id)
        if row is None:
            raise no_session(id)
        return await handler(request, row)

    return answer
