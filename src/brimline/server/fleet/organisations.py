"""The organisations of a server: each has an application with a store of its own rows only."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec
from starlette.applications import Starlette
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response

from brimline.api.app import create_api
from brimline.api.event_stream import MEDIA_TYPE, StreamRoutes
from brimline.api.fleet import FleetRoutes, fill_levels
from brimline.api.fleet_usage import FleetUsageRoutes
from brimline.api.identity import AccessScope, find_identity
from brimline.api.metrics import MetricsRoutes
from brimline.api.openapi import FLEET_SECURITY, Endpoint
from brimline.api.responses import RETRY_HINT, RequestRefused, Routes, json_response
from brimline.api.schemas import DaemonStatus, Problem
from brimline.api.sessions import SessionRoutes
from brimline.api.telemetry.endpoint import TelemetryRoutes
from brimline.api.uplink import UplinkRoutes
from brimline.daemon.log_limit import RateLimitedLog
from brimline.daemon.retry import Work, is_transient
from brimline.errors import StoreFailed
from brimline.monitor.user_rules import Rules
from brimline.server.fleet.actions import ActionRoutes
from brimline.server.fleet.enrolment import EnrolmentRoutes
from brimline.server.session_service import SessionService
from brimline.settings import Settings, seconds
from brimline.store.postgres.database import PostgresDatabase

# Streams too: their events repeat each other.
NOT_COMPRESSED = tuple(each for each in DEFAULT_EXCLUDED_CONTENT_TYPES if each != MEDIA_TYPE)

OUTAGE_S = 300.0  # failures within this time are logged as one
NO_DATABASE = "the server's database does not answer"


class StoreFailures:
    """Answers requests that failed by the database, and logs the first reason of an outage."""

    def __init__(self) -> None:
        self._log = RateLimitedLog(repeat_after_s=OUTAGE_S, by_reason=False)

    async def respond(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, StoreFailed)
        if not is_transient(error):  # a value of the request
            return json_response(Problem(error.reason), 422)
        self._log.warn("requests fail", error)
        return json_response(Problem(NO_DATABASE, RETRY_HINT), 503)


class Caller(msgspec.Struct, frozen=True):
    """Who asks: the name of a token or of a user, its organisation and what it may do.

    `can_sign_out` if the request has the cookie of a sign-in.
    """

    organisation: str
    actor: str
    scopes: list[AccessScope]
    can_sign_out: bool


class ServerRoutes:
    endpoints = (
        Endpoint("GET", "/v1/daemon", "status", "Get the server's status.", DaemonStatus),
        Endpoint("GET", "/v1/identity", "identity", "Get who this token or cookie is.", Caller,
                 scope="any"),
    )  # fmt: skip

    def __init__(self, status: Callable[[], DaemonStatus]) -> None:
        self._status = status

    async def status(self, request: Request) -> Response:
        return json_response(self._status())

    async def identity(self, request: Request) -> Response:
        identity = find_identity(request.scope)
        assert identity is not None
        caller = Caller(
            organisation=identity.organisation,
            actor=identity.actor,
            scopes=sorted(identity.scopes),
            can_sign_out=identity.has_cookie,
        )
        return json_response(caller)


class SessionReadRoutes(SessionRoutes):
    """The routes of sessions, without those that send or that belong to an agent's machine."""

    endpoints = tuple(
        each
        for each in SessionRoutes.endpoints
        if each.method == "GET" or each.path == "/v1/events"
    )


# What every organisation's application serves; its parts are built in `Organisation`.
FLEET_ENDPOINTS: tuple[Endpoint, ...] = (
    *UplinkRoutes.endpoints,
    *EnrolmentRoutes.endpoints,
    *ServerRoutes.endpoints,
    *MetricsRoutes.endpoints,
    *SessionReadRoutes.endpoints,
    *ActionRoutes.endpoints,
    *StreamRoutes.endpoints,
    *TelemetryRoutes.endpoints,
    *FleetRoutes.endpoints,
    *FleetUsageRoutes.endpoints,
)


class Organisation:
    """The sessions and the application of one organisation."""

    def __init__(
        self,
        name: str,
        database: PostgresDatabase,
        settings: Settings,
        status: DaemonStatus,
        is_stopping: Callable[[], bool],
        failures: StoreFailures,
    ) -> None:
        rules = Rules.of_settings(settings)
        self._sessions = sessions = SessionService(
            database.store(name), rules, settings, is_stopping, organisation=name
        )
        store, monitor, views = sessions.store, sessions.monitor, sessions.views
        self._sums = database.session_sums(name)
        self._keep_sums_s = seconds(settings.fleet.keep_sums)
        self._machines = machines = database.machines(name)
        figures = database.figures(name, partial(fill_levels, rules), rules.by)
        # Routes are matched in this order, and nearly all requests are those of uplinks.
        parts: Sequence[Routes] = (
            UplinkRoutes(store, machines=machines),
            EnrolmentRoutes(database.tokens),
            ServerRoutes(lambda: status),
            sessions.metrics(lambda: status, machines, partial(database.tokens.count_ending, name)),
            SessionReadRoutes(store, monitor, views, sessions.cache, None),
            ActionRoutes(store, monitor, database.audit),
            sessions.stream,
            sessions.telemetry,
            FleetRoutes(figures, views, machines),
            FleetUsageRoutes(figures),
        )
        self.app: Starlette = create_api(store, parts, check_scope, FLEET_SECURITY)
        self.app.add_middleware(
            GZipMiddleware, compresslevel=1, exclude_content_types=NOT_COMPRESSED
        )
        self.app.add_exception_handler(StoreFailed, failures.respond)
        sessions.count_ingest(self.app, parts)
        sessions.output.start()

    async def forget_old(self, now: float) -> None:
        await self._sessions.forget_old_sessions(now)
        await self._machines.prune(now)
        await self._sums.prune(datetime.fromtimestamp(now - self._keep_sums_s, UTC).date())

    async def sum_costs(self) -> None:
        """Sum what changed sessions used and cost, for the fleet view and its months."""
        await self._sums.update()

    async def close(self) -> None:
        await self._sessions.output.close()
        await self._sessions.store.close()


class Organisations:
    """The organisations that this replica knows, by their names."""

    def __init__(
        self,
        database: PostgresDatabase,
        create: Callable[[str], Organisation],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database, self._create, self._clock = database, create, clock
        self._by_name: dict[str, Organisation] = {}
        self._log = RateLimitedLog()

    def get(self, name: str) -> Organisation:
        if name not in self._by_name:
            self._by_name[name] = self._create(name)
        return self._by_name[name]

    async def forget_old(self) -> None:
        """Remove old sessions, machines and audit entries, and what is left of ended sign-ins.

        A replica whose clock is ahead of the database's would remove what others still need.
        """
        now = min(self._clock(), await self._database.now())
        for name in await self._database.organisations():
            forget = partial(self.get(name).forget_old, now)
            await self._run("remove old sessions", name, forget)
        await self._database.tokens.prune(now)
        await self._database.audit.prune(now)

    async def sum_costs(self) -> None:
        for name, organisation in list(self._by_name.items()):
            await self._run("sum costs", name, organisation.sum_costs)

    async def _run(self, what: str, name: str, work: Work) -> None:
        """Run the work of an organisation; a failure, which may be its own alone, is logged."""
        try:
            await work()
        except StoreFailed as error:
            self._log.warn(f"cannot {what} of {name}", error)

    async def close(self) -> None:
        await asyncio.gather(*(each.close() for each in self._by_name.values()))


def check_scope(request: Request, endpoint: Endpoint) -> None:
    """Refuse a request whose token or user lacks the scope of its endpoint."""
    identity, needed = find_identity(request.scope), endpoint.needed_scope
    if identity is None or needed not in {*identity.scopes, "any"}:
        who = identity.actor if identity else "unknown"
        hint = f"Use a token with it: `brimline token create --scope {needed}`."
        raise RequestRefused(403, f"{who} lacks the scope {needed!r}", hint)
