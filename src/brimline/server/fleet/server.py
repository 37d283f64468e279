"""A replica of a fleet's server: any number of them share one PostgreSQL database."""

import asyncio
import math
import os
import socket
import ssl
import time
from collections.abc import Callable
from functools import partial

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from brimline._version import __version__
from brimline.errors import BrimlineError, InvalidSettings
from brimline.loopback import is_loopback
from brimline.server.allocator import use_one_arena
from brimline.server.api.app import ERROR_HANDLERS
from brimline.server.api.identity import set_identity
from brimline.server.api.middleware import BodyLimit, pass_on
from brimline.server.api.responses import (
    RETRY_HINT,
    RequestRefused,
    json_response,
    refusal_response,
)
from brimline.server.api.schemas import DaemonStatus, Health, Problem
from brimline.server.fleet.authentication import PAGE, Authenticator
from brimline.server.fleet.organisations import Organisation, Organisations
from brimline.server.fleet.rate_limit import RateLimit
from brimline.server.fleet.sign_in import (
    SIGN_IN_PATH,
    SIGN_OUT_PATH,
    Cookie,
    SignIn,
    form_response,
)
from brimline.server.fleet.tokens import TokenLookup
from brimline.server.http_server import (
    ConnectionLimits,
    create_server,
    raise_descriptor_limit,
    stop_on_signals,
)
from brimline.server.retry import RateLimitedLog, Work, is_transient, running
from brimline.server.sockets import BACKLOG
from brimline.settings import Settings
from brimline.store.postgres import open_database
from brimline.store.postgres.database import PostgresDatabase

HEALTH_PATH = "/healthz"
PUBLIC_PATHS = (HEALTH_PATH, SIGN_IN_PATH, SIGN_OUT_PATH)
MAX_CONNECTIONS = 16_384
FORGET_INTERVAL_S = 3_600.0
SUM_INTERVAL_S = 20.0  # so late the fleet view may show costs

NO_DATABASE = "the server's database does not answer"


class ListenAddress(msgspec.Struct, frozen=True):
    """Where a replica listens, and what keeps others from reading its tokens on the way.

    `is_behind_proxy` if a proxy in front of it speaks TLS.
    """

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
                problem = f"cannot load {self.certificate} with {self.key}: {error}"
                raise InvalidSettings("argument", "--tls-cert", problem) from error
        elif not self.is_behind_proxy and not is_loopback(self.host):
            problem = (
                f"{self.host} is reachable by others, who could read tokens: pass --tls-cert and "
                "--tls-key, or --behind-proxy if a proxy in front of it speaks TLS"
            )
            raise InvalidSettings("argument", "--listen", problem)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"


class FleetServer:
    """Serves all organisations of a database until it is stopped."""

    def __init__(self, settings: Settings, database: str, address: ListenAddress) -> None:
        address.check()
        self._settings, self._database, self._address = settings, database, address
        self._http: uvicorn.Server | None = None
        self._stopped = False

    async def run(self, ready: Callable[[str], None]) -> None:
        """Run until stopped; `ready` is called with the server's address."""
        use_one_arena()
        with _listen(self._address) as listening:
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
        app = FleetApp(database, self._settings, address, self._stopping)
        limits = ConnectionLimits(None, raise_descriptor_limit(MAX_CONNECTIONS))
        self._http = create_server(app, limits, address.certificate, address.key)
        stop_on_signals(self.stop)
        self._http.should_exit = self._stopped
        works = {
            "removal of old sessions": partial(
                _repeat, FORGET_INTERVAL_S, app.organisations.forget_old
            ),
            "sums of costs": partial(_repeat, SUM_INTERVAL_S, app.organisations.sum_costs),
        }
        ready(address.url)
        try:
            async with running(works):
                await self._http.serve(sockets=[listening])
        finally:
            await app.organisations.close()

    def stop(self) -> None:
        """Stop after the requests that are being answered."""
        self._stopped = True
        if self._http is not None:
            self._http.should_exit = True

    def _stopping(self) -> bool:
        return self._http is not None and self._http.should_exit


class FleetApp:
    """Finds out who sends a request, and passes it to the application of their organisation."""

    def __init__(
        self,
        database: PostgresDatabase,
        settings: Settings,
        address: ListenAddress,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        is_secure = address.certificate is not None or address.is_behind_proxy
        cookie = Cookie.of_server(address.port, is_secure)
        tokens = TokenLookup(database.tokens)
        self._authenticator = Authenticator(tokens, settings.fleet, cookie.name)
        self._limit = RateLimit(settings.fleet)
        self._log = RateLimitedLog()
        sign_in = SignIn(database.tokens, tokens, self._authenticator, cookie)
        self._public = Starlette(
            routes=[Route(HEALTH_PATH, _answer_health), *sign_in.routes],
            exception_handlers=ERROR_HANDLERS,
        )
        self._public.add_middleware(BodyLimit)
        status = _status(address)
        self.organisations = Organisations(
            database, lambda name: Organisation(name, database, settings, status, stopping)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] in PUBLIC_PATHS:
            await pass_on(self._public, scope, receive, send)
            return
        try:
            identity = await self._authenticator.identify(scope)
        except BrimlineError as error:
            response = await self._refuse(Request(scope), error)
            await response(scope, receive, send)
            return
        if wait_s := self._limit.admit(identity.key):
            await _limited(wait_s)(scope, receive, send)
            return
        set_identity(scope, identity)
        counted = self._limit.count_body(identity.key, receive)
        app = self.organisations.get(identity.organisation).app
        await pass_on(app, scope, counted, send)

    async def _refuse(self, request: Request, error: BrimlineError) -> Response:
        """Return the response to an unknown sender; a browser gets the sign-in page."""
        if is_transient(error):
            self._log.warn("cannot look up tokens", error)
            return json_response(Problem(NO_DATABASE, RETRY_HINT), 503)
        is_missing = isinstance(error, RequestRefused) and error.status == 401
        if is_missing and request.method == "GET" and request.url.path == PAGE:
            return form_response(status=401)
        response = await refusal_response(request, error)
        if is_missing:
            response.headers["www-authenticate"] = "Bearer"
        return response


def _limited(wait_s: float) -> Response:
    """Return the response to a token that has sent too much."""
    after = math.ceil(wait_s)
    hint = f"Try again in {after} s. `[fleet]` in the server's settings has the limits."
    response = json_response(Problem("too many requests or bytes in a minute", hint), 429)
    response.headers["retry-after"] = str(after)
    return response


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


async def _repeat(interval_s: float, work: Work) -> None:
    while True:
        await work()
        await asyncio.sleep(interval_s)


def _listen(address: ListenAddress) -> socket.socket:
    """Listen at an address; raises InvalidSettings."""
    listening: socket.socket | None = None
    try:
        family, kind, protocol, _, name = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(name)
        listening.listen(BACKLOG)
    except OSError as error:
        if listening is not None:
            listening.close()
        problem = f"cannot listen on {address.host}:{address.port}: {error.strerror}"
        raise InvalidSettings("argument", "--listen", problem) from error
    return listening
