"""The HTTP application: all routes behind access control and limits."""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from brimline.agents.hook_adapter import HookRequest
from brimline.api.access import LINK_PATH, AccessControl
from brimline.api.calling_session import HereRoutes
from brimline.api.compactions import CompactionRoutes
from brimline.api.event_stream import StreamRoutes
from brimline.api.history import HistoryRoutes
from brimline.api.legacy_endpoints import LegacyRoutes
from brimline.api.metrics import MetricsRoutes
from brimline.api.middleware import BodyLimit, RequestGuard, tcp_port
from brimline.api.openapi import (
    DAEMON_SECURITY,
    Endpoint,
    SecuritySchemes,
    build_document,
)
from brimline.api.recall import RecallRoutes
from brimline.api.request_limits import LoadLimit
from brimline.api.responses import (
    RequestRefused,
    Routes,
    disconnect_response,
    failure_response,
    http_error_response,
    json_response,
    refusal_response,
    unknown_session,
)
from brimline.api.schemas import DaemonStatus, Health, PageLink
from brimline.api.sessions import SessionRoutes
from brimline.api.static import USED_LINK, page_routes, sign_in_response
from brimline.api.telemetry.endpoint import TelemetryRoutes
from brimline.api.tools import ToolRoutes
from brimline.api.transcripts import TranscriptRoutes
from brimline.daemon.hook_requests.dispatcher import HookDispatcher
from brimline.daemon.hook_requests.hook_socket import record_delivery
from brimline.daemon.log_limit import RateLimitedLog
from brimline.errors import BrimlineError
from brimline.store.base import Store

UNIX_ONLY = "forbidden: only available over the daemon's Unix socket"
UNIX_HINT = "Use the `brimline` command, or connect to `http.sock`."


class DaemonRoutes:
    endpoints = (
        Endpoint("GET", "/healthz", "health", "Health check.", Health),
        Endpoint("GET", "/v1/daemon", "daemon", "Get the daemon's status.", DaemonStatus),
        Endpoint("DELETE", "/v1/daemon", "end", "Stop the daemon.", Health, unix_only=True),
        Endpoint("POST", "/v1/daemon/link", "link", "Create a link that opens the page once.",
                 PageLink, status=201, unix_only=True),
    )  # fmt: skip

    def __init__(
        self, status: Callable[[], DaemonStatus], stop: Callable[[], None], access: AccessControl
    ) -> None:
        self._status, self._stop, self._access = status, stop, access

    async def health(self, request: Request) -> Response:
        return json_response(Health("ok"))

    async def daemon(self, request: Request) -> Response:
        return json_response(self._status())

    async def end(self, request: Request) -> Response:
        self._stop()
        return json_response(Health("stopping"))

    async def link(self, request: Request) -> Response:
        return json_response(PageLink(self._access.page_link()), 201)


class HookRoutes:
    """Hooks that a client posts itself.

    A reply is marked as delivered after it was sent; if the daemon dies before, it is sent again.
    """

    endpoints = (
        Endpoint("POST", "/hooks/{agent}", "hook", "Answer a hook in its agent's format.",
                 dict[str, Any], dict[str, Any]),
    )  # fmt: skip

    def __init__(self, dispatcher: HookDispatcher) -> None:
        self._dispatcher = dispatcher
        self._log = RateLimitedLog()

    async def hook(self, request: Request) -> Response:
        hook_request = HookRequest(
            kind="hook",
            agent=request.path_params["agent"],
            id=f"{time.time_ns()}-0",
            pid=0,
            env={},
            body=await request.body(),
        )
        answer = await self._dispatcher.handle(hook_request)
        response = Response(answer.text or b"{}", media_type="application/json")
        if answer.wants_ack:
            is_delivered = not await request.is_disconnected()
            response.background = BackgroundTask(
                record_delivery, self._dispatcher, answer, is_delivered, self._log
            )
        return response


ENDPOINTS: tuple[Endpoint, ...] = (
    *DaemonRoutes.endpoints,
    *MetricsRoutes.endpoints,
    *TranscriptRoutes.endpoints,
    *RecallRoutes.endpoints,
    *CompactionRoutes.endpoints,
    *ToolRoutes.endpoints,
    *SessionRoutes.endpoints,
    *HistoryRoutes.endpoints,
    *StreamRoutes.endpoints,
    *TelemetryRoutes.endpoints,
    *LegacyRoutes.endpoints,
    *HookRoutes.endpoints,
    *HereRoutes.endpoints,
)


ERROR_HANDLERS = {
    BrimlineError: refusal_response,
    RequestRefused: refusal_response,
    ClientDisconnect: disconnect_response,
    HTTPException: http_error_response,
    Exception: failure_response,
}


def create_app(
    store: Store,
    parts: Sequence[Routes],
    access: AccessControl,
    open_paths: Sequence[str] = (),
) -> Starlette:
    """Return a daemon's application; paths that begin with one of `open_paths` need no secret."""
    app = create_api(store, parts, check_unix_only)
    app.routes.append(Route(LINK_PATH, partial(_open_page, access)))
    app.add_middleware(RequestGuard, access=access, open_paths=open_paths)
    return app


def create_api(
    store: Store,
    parts: Sequence[Routes],
    check: Callable[[Request, Endpoint], None],
    security: SecuritySchemes = DAEMON_SECURITY,
) -> Starlette:
    """Return the API and the page; `check` raises RequestRefused if a request is not allowed."""

    async def openapi(request: Request) -> Response:
        endpoints = [each for part in parts for each in part.endpoints]
        return json_response(build_document(endpoints, security))

    routes = [
        Route("/openapi.json", openapi),
        *(_route(store, part, each, check) for part in parts for each in part.endpoints),
        *page_routes(),
    ]
    app = Starlette(routes=routes, exception_handlers=ERROR_HANDLERS)
    app.add_middleware(BodyLimit)
    app.add_middleware(LoadLimit)
    return app


def check_unix_only(request: Request, endpoint: Endpoint) -> None:
    """Refuse a request over TCP that only the user's own programs may send."""
    if endpoint.unix_only and tcp_port(request.scope) is not None:
        raise RequestRefused(403, UNIX_ONLY, UNIX_HINT)


async def _open_page(access: AccessControl, request: Request) -> Response:
    """Give a browser our cookie; one that has it already may use an old link."""
    headers = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
    # What previews or scans links asks by HEAD, which has no effect (RFC 9110, 9.2.1).
    if request.method == "HEAD":
        return RedirectResponse("/", 303, headers)
    if access.links.redeem(request.query_params.get("code", "")):
        headers["set-cookie"] = access.cookie()
    elif not access.has_cookie(request.headers.get("cookie", "").encode("latin-1")):
        return sign_in_response(USED_LINK)
    return RedirectResponse("/", 303, headers)


def _route(
    store: Store, part: Routes, endpoint: Endpoint, check: Callable[[Request, Endpoint], None]
) -> Route:
    handler: Callable[..., Awaitable[Response]] = getattr(part, endpoint.handler)

    async def answer(request: Request) -> Response:
        check(request, endpoint)
        if not endpoint.needs_session:
            return await handler(request)
        id = request.path_params["id"]
        row = await store.session(id)
        if row is None:
            raise unknown_session(id)
        return await handler(request, row)

    path = endpoint.path.replace("{id}", "{id:path}")  # an agent's own ids may have slashes
    return Route(path, answer, methods=[endpoint.method])
