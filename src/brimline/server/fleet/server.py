"""A replica of a fleet's server: any number of them share one PostgreSQL database."""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Callable
from functools import partial

import msgspec
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
from brimline.daemon.allocator import limit_fragmentation
from brimline.daemon.retry import repeat, running
from brimline.daemon.sockets import BACKLOG
from brimline.errors import BrimlineError, InvalidSettings, StoreFailed
from brimline.files.loopback import is_loopback
from brimline.server.fleet.authentication import PAGE, Authenticator, TokenLookup
from brimline.server.fleet.organisations import Organisation, Organisations, StoreFailures
from brimline.server.fleet.sign_in import (
    MAX_FORM_BYTES,
    SIGN_IN_PATH,
    SIGN_OUT_PATH,
    Cookie,
    SignIn,
    form_response,
)
from brimline.server.http_server import (
    ConnectionLimits,
    HttpServer,
    raise_descriptor_limit,
    stop_on_signals,
)
from brimline.settings import Settings
from brimline.store.postgres import open_database
from brimline.store.postgres.database import PostgresDatabase

MAX_CONNECTIONS = 16_384
FORGET_INTERVAL_S = 3_600.0
SUM_INTERVAL_S = 20.0  # costs in the fleet view are at most this old

HEALTH_PATH, READY_PATH = "/healthz", "/readyz"
PUBLIC_PATHS = (HEALTH_PATH, READY_PATH, SIGN_IN_PATH, SIGN_OUT_PATH)
READY_TIMEOUT_S = 4.0  # a probe of Kubernetes waits for 5 s


class ListenAddress(msgspec.Struct, frozen=True):
    """A host and a port; `is_behind_proxy` if a proxy in front of them speaks TLS."""

    host: str
    port: int
    certificate: str | None = None
    key: str | None = None
    is_behind_proxy: bool = False

    def check(self) -> None:
        """Raise InvalidSettings if tokens could be read on the way, or a file of TLS is wrong."""
        if (self.certificate is None) != (self.key is None):
            missing = "--tls-cert" if self.certificate is None else "--tls-key"
            raise InvalidSettings("argument", missing, "pass both --tls-cert and --tls-key")
        if self.certificate is not None and self.key is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
            except OSError as error:  # also ssl.SSLError
                reason = f"cannot load {self.certificate} with {self.key}: {error}"
                raise InvalidSettings("argument", "--tls-cert", reason) from error
        elif not self.is_behind_proxy and not is_loopback(self.host):
            reason = (
                f"{self.host} is reachable by others, who could read tokens: pass --tls-cert and "
                "--tls-key, or --behind-proxy if a proxy in front of it speaks TLS"
            )
            raise InvalidSettings("argument", "--listen", reason)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by TLS."""
        return self.certificate is not None or self.is_behind_proxy

    def listen(self) -> socket.socket:
        """Return a socket that listens there; raises InvalidSettings."""
        listening: socket.socket | None = None
        try:
            family, kind, protocol, _, name = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listening = socket.socket(family, kind, protocol)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(name)
            listening.listen(BACKLOG)
        except OSError as error:
            if listening is not None:
                listening.close()
            reason = f"cannot listen on {self.host}:{self.port}: {error.strerror}"
            raise InvalidSettings("argument", "--listen", reason) from error
        return listening


class FleetApp:
    """Authenticates a request, and passes it to the application of the sender's organisation."""

    def __init__(
        self,
        database: PostgresDatabase,
        settings: Settings,
        address: ListenAddress,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._database = database
        cookie = Cookie.of_server(address.port, address.is_secure)
        tokens = TokenLookup(database.tokens)
        self._authenticator = Authenticator(
            tokens, settings.fleet, cookie.name, address.is_behind_proxy
        )
        self._limit = RateLimit(settings.fleet)
        self._failures = StoreFailures()
        sign_in = SignIn(database.tokens, tokens, self._authenticator, cookie)
        self._public = Starlette(
            routes=[
                Route(HEALTH_PATH, _answer_health),
                Route(READY_PATH, self._answer_readiness),
                *sign_in.routes,
            ],
            exception_handlers=ERROR_HANDLERS | {StoreFailed: self._failures.respond},
        )
        self._public.add_middleware(BodyLimit, max_bytes=MAX_FORM_BYTES)
        status = _status(address)
        self.organisations = Organisations(
            database,
            lambda name: Organisation(name, database, settings, status, stopping, self._failures),
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

    async def _answer_readiness(self, request: Request) -> Response:
        """Answer whether requests can be served: raises StoreFailed without the database."""
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                await self._database.now()
        except TimeoutError as error:
            raise StoreFailed("PostgreSQL", f"no answer within {READY_TIMEOUT_S:g} s") from error
        return json_response(Health("ok"))

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


class FleetServer:
    """Serves all organisations of a database until it is stopped."""

    def __init__(self, settings: Settings, database: str, address: ListenAddress) -> None:
        address.check()
        self._settings, self._database, self._address = settings, database, address
        self._http = HttpServer()

    async def run(self, ready: Callable[[str], None]) -> None:
        """Run until stopped; `ready` is called with the server's address."""
        limit_fragmentation()
        with self._address.listen() as listening:
            address = msgspec.structs.replace(self._address, port=listening.getsockname()[1])
            database = await open_database(self._database)
            try:
                await self._serve(database, address, listening, ready)
            finally:
                await database.close()

    async def _serve(
        self,
        database: PostgresDatabase,
        address: ListenAddress,
        listening: socket.socket,
        ready: Callable[[str], None],
    ) -> None:
        app = FleetApp(database, self._settings, address, self._http.is_stopping)
        limits = ConnectionLimits(None, raise_descriptor_limit(MAX_CONNECTIONS))
        stop_on_signals(self._http.stop)
        works = {
            "removal of old sessions": partial(
                repeat, FORGET_INTERVAL_S, app.organisations.forget_old
            ),
            "sums of costs": partial(repeat, SUM_INTERVAL_S, app.organisations.sum_costs),
        }
        ready(address.url)
        try:
            async with running(works):
                await self._http.serve(app, limits, [listening], address.certificate, address.key)
        finally:
            await app.organisations.close()
