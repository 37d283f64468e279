"""The application of a fleet's server: authenticates requests, and passes them on."""

import os
import time
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from brimline._version import __version__
from brimline.api.app import ERROR_HANDLERS
from brimline.api.identity import set_identity
from brimline.api.middleware import BodyLimit, pass_on
from brimline.api.request_limits import STREAMS, RateLimit
from brimline.api.responses import (
    RequestRefused,
    json_response,
    refusal_response,
)
from brimline.api.schemas import DaemonStatus, Health
from brimline.errors import BrimlineError, StoreFailed
from brimline.server.fleet.authentication import PAGE, Authenticator
from brimline.server.fleet.listen_address import ListenAddress
from brimline.server.fleet.organisations import Organisation, Organisations
from brimline.server.fleet.sign_in import (
    MAX_FORM_BYTES,
    SIGN_IN_PATH,
    SIGN_OUT_PATH,
    Cookie,
    SignIn,
    form_response,
)
from brimline.server.fleet.store_failures import StoreFailures
from brimline.server.fleet.tokens import TokenLookup
from brimline.settings import Settings
from brimline.store.postgres.database import PostgresDatabase

HEALTH_PATH = "/healthz"
PUBLIC_PATHS = (HEALTH_PATH, SIGN_IN_PATH, SIGN_OUT_PATH)


class FleetApp:
    """Authenticates a request, and passes it to the application of the sender's organisation."""

    def __init__(
        self,
        database: PostgresDatabase,
        settings: Settings,
        address: ListenAddress,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        cookie = Cookie.of_server(address.port, address.is_secure)
        tokens = TokenLookup(database.tokens)
        self._authenticator = Authenticator(
            tokens, settings.fleet, cookie.name, address.is_behind_proxy
        )
        self._limit = RateLimit(settings.fleet)
        self._failures = StoreFailures()
        sign_in = SignIn(database.tokens, tokens, self._authenticator, cookie)
        self._public = Starlette(
            routes=[Route(HEALTH_PATH, _answer_health), *sign_in.routes],
            exception_handlers=ERROR_HANDLERS | {StoreFailed: self._failures.respond},
        )
        self._public.add_middleware(BodyLimit, max_bytes=MAX_FORM_BYTES)
        status = _status(address)
        self.organisations = Organisations(
            database, lambda name: Organisation(name, database, settings, status, stopping)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        send = _without_caching(send)
        if scope["path"] in PUBLIC_PATHS:
            await pass_on(self._public, scope, receive, send)
            return
        try:
            identity = await self._authenticator.identify(scope)
            self._limit.count_request(identity.key)
        except BrimlineError as error:
            response = await self._refuse(Request(scope), error)
            await response(scope, receive, send)
            return
        set_identity(scope, identity)
        counted = self._limit.count_body(identity.key, receive)
        app = self.organisations.get(identity.organisation).app
        if scope["path"] in STREAMS:
            send = self._while_valid(scope, send)
        await pass_on(app, scope, counted, send)

    def _while_valid(self, scope: Scope, send: Send) -> Send:
        """Return `send` that ends a stream as soon as its token is revoked or has expired."""
        has_ended = False

        async def send_if_valid(message: Message) -> None:
            nonlocal has_ended
            if has_ended:
                return
            if message["type"] == "http.response.body" and not await self._is_valid(scope):
                has_ended = True
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        return send_if_valid

    async def _is_valid(self, scope: Scope) -> bool:
        try:
            await self._authenticator.identify(scope)
        except RequestRefused:
            return False
        except StoreFailed:
            pass  # nothing new can be read either
        return True

    async def _refuse(self, request: Request, error: Exception) -> Response:
        """Return the response to an error before the request is passed on.

        A browser that is not signed in gets the form.
        """
        if isinstance(error, StoreFailed):
            return await self._failures.respond(request, error)
        is_missing = isinstance(error, RequestRefused) and error.status == 401
        if is_missing and request.method == "GET" and request.url.path == PAGE:
            return form_response(status=401)
        response = await refusal_response(request, error)
        if is_missing:
            response.headers["www-authenticate"] = "Bearer"
        return response


def _without_caching(send: Send) -> Send:
    """Return `send` that forbids caches to keep a response, unless this sets `cache-control`."""

    async def send_uncached(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).setdefault("cache-control", "no-store")
        await send(message)

    return send_uncached


async def _answer_health(request: Request) -> Response:
    return json_response(Health("ok"))


def _status(address: ListenAddress) -> DaemonStatus:
    return DaemonStatus(
        version=__version__,
        pid=os.getpid(),
        since=time.time(),
        address=address.url,
        heard=0,
        malformed=0,
        dropped=0,
        fleet=True,
    )
