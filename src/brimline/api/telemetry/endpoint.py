"""OpenTelemetry in: the calls of clients that report by their own telemetry only."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.agents import agent_names, telemetry_readers
from brimline.agents.observations import Observation, Reply
from brimline.agents.telemetry import (
    GEN_AI,
    Attributes,
    LogRecord,
    ScopeTelemetry,
    TelemetryEvent,
    TelemetryReader,
    get_text,
)
from brimline.api.identity import find_team
from brimline.api.openapi import Endpoint
from brimline.api.request_limits import handle_by_session
from brimline.api.responses import RequestRefused, plausible_time
from brimline.api.schemas import MAX_AGENT_CHARS, MAX_ID_CHARS
from brimline.api.telemetry.otlp_json import ExportLogs, ExportResult, ExportTraces
from brimline.api.telemetry.records import OtlpEncoding, OtlpSignal, Rejected
from brimline.api.telemetry.request_body import find_encoding, read_decompressed
from brimline.daemon.telemetry_export.collector import Forwarder
from brimline.errors import InvalidUsage
from brimline.monitor.monitor import Monitor
from brimline.store.base import Store, hash_id

UNNAMED_PROGRAM = "opentelemetry"
USER_ATTRIBUTES = ("user.email", "user.id")
TEAM_ATTRIBUTES = ("team.id", "department")


class TelemetrySender(msgspec.Struct, frozen=True):
    """Who sent the records of a resource."""

    agent: str
    reader: TelemetryReader
    version: str | None = None
    host: str | None = None
    team: str | None = None


class SentEvent(msgspec.Struct, frozen=True):
    """An event with its sender; `user` is that of the resource, or else of the record itself."""

    sender: TelemetrySender
    reported: TelemetryEvent
    user: str | None = None


class TelemetryRoutes:
    endpoints = (
        Endpoint("POST", "/v1/logs", "logs", "Receive OpenTelemetry logs of clients (OTLP; JSON, "
                 "or protobuf).", ExportResult, ExportLogs, scope="ingest"),
        Endpoint("POST", "/v1/traces", "traces", "Receive OpenTelemetry spans of model calls "
                 "(OTLP; JSON, or protobuf).", ExportResult, ExportTraces, scope="ingest"),
        Endpoint("POST", "/v1/metrics", "metrics", "Accept OpenTelemetry metrics, which are not "
                 "used: they have no single calls.", ExportResult, dict[str, Any], scope="ingest"),
    )  # fmt: skip

    def __init__(self, store: Store, monitor: Monitor, forwarder: Forwarder | None = None) -> None:
        self._store, self._monitor, self._forwarder = store, monitor, forwarder

    async def logs(self, request: Request) -> Response:
        """Take the calls in log records; those of sessions with a transcript are known already."""
        return await self._take(request, "logs")

    async def traces(self, request: Request) -> Response:
        """Take the calls in spans."""
        return await self._take(request, "traces")

    async def metrics(self, request: Request) -> Response:
        encoding = find_encoding(request)
        await self._pass_on(request)
        # Without rejected records the answers to all signals are equal.
        return Response(encoding.encode_result("logs", Rejected()), media_type=encoding.MEDIA)

    async def _take(self, request: Request, signal: OtlpSignal) -> Response:
        encoding = find_encoding(request)
        try:
            exported = await _decode(encoding, signal, request)
        except RequestRefused as refused:
            error = encoding.encode_error(refused.reason, refused.hint)
            return Response(error, refused.status, media_type=encoding.MEDIA)
        rejected, team = Rejected(), find_team(request.scope)

        async def observe(events: list[SentEvent]) -> list[Reply]:
            return await self._observe(events, rejected, team)

        events = read_all(exported, rejected)
        await handle_by_session(events, lambda event: event.reported.session, observe)
        await self._pass_on(request)
        return Response(encoding.encode_result(signal, rejected), media_type=encoding.MEDIA)

    async def _pass_on(self, request: Request) -> None:
        """Pass a request on as it came, if the settings name a collector."""
        body = await request.body()
        if self._forwarder is not None:
            self._forwarder.put(request.url.path, request.headers, body)

    async def _observe(
        self, events: Sequence[SentEvent], rejected: Rejected, team: str | None
    ) -> list[Reply]:
        """Process the events of one session; those of another agent than its own are rejected.

        `team` is that of the token, if it has one.
        """
        session = events[0].reported.session
        known = self._monitor.state_of(session) or await self._store.session(session)
        agent = known.agent if known else events[0].sender.agent
        observations: list[Observation] = []
        for event in events:
            if event.sender.agent == agent:
                observations.append(self._observation(event, team))
            else:
                rejected.add(f"session {session!r} belongs to another agent: {agent}")
        return await self._monitor.observe_all(observations)

    def _observation(self, sent: SentEvent, team: str | None) -> Observation:
        sender, reported, event = sent.sender, sent.reported, sent.reported.event
        at = plausible_time(event.at, self._monitor.now())
        if event.at is not None:
            event = msgspec.structs.replace(event, at=at)
        return Observation(
            id=hash_id("telemetry", reported.session, reported.id),
            agent=sender.agent,
            session=reported.session,
            kind="pushed",
            at=at,
            host=sender.host,
            version=sender.version,
            events=(event,),
            is_telemetry=True,
            user=sent.user,
            team=team or sender.team,
        )


async def _decode(
    encoding: OtlpEncoding, signal: OtlpSignal, request: Request
) -> Sequence[ScopeTelemetry]:
    body = await read_decompressed(request)
    try:
        # 16 MiB of attributes take a second: no hook must wait for that.
        return await asyncio.to_thread(encoding.decode_request, signal, body)
    except ValueError as error:
        raise RequestRefused(400, str(error)) from error


def find_sender(resource: Attributes, scope: str) -> TelemetrySender:
    """Return the client of a resource and scope; else a program, whose `gen_ai` spans are read."""
    service = get_text(resource, "service.name")[:MAX_AGENT_CHARS]
    program = UNNAMED_PROGRAM if not service or service in agent_names() else service
    own = [each for each in telemetry_readers() if each[1].is_own(service, scope)]
    agent, reader = own[0] if own else (program, GEN_AI)
    return TelemetrySender(
        agent,
        reader,
        version=_limited(resource, "service.version") if reader.reports_version else None,
        host=_limited(resource, "host.name"),
        team=_limited(resource, *TEAM_ATTRIBUTES),
    )


def read_all(exported: Iterable[ScopeTelemetry], rejected: Rejected) -> Iterator[SentEvent]:
    """Yield the events of a request, those of a scope by their times."""
    for telemetry in exported:
        sender = find_sender(telemetry.resource, telemetry.scope)
        events = read_events(telemetry, sender, rejected)
        # The events of a span may be older than spans that ended before it.
        yield from sorted(events, key=lambda event: event.reported.event.at or 0.0)


def read_events(
    telemetry: ScopeTelemetry, sender: TelemetrySender, rejected: Rejected
) -> Iterator[SentEvent]:
    """Yield the events in log records and spans; records of other kinds have none."""
    reader = sender.reader
    for record in (*telemetry.logs, *telemetry.spans):
        try:
            is_log = isinstance(record, LogRecord)
            events = reader.read_log(record) if is_log else reader.read_span(record)
        except InvalidUsage as error:
            rejected.add(str(error))
            continue
        user = _limited({**record.attributes, **telemetry.resource}, *USER_ATTRIBUTES)
        for event in events:
            if max(len(event.session), len(event.id)) > MAX_ID_CHARS:
                rejected.add(f"an id has more than {MAX_ID_CHARS} characters")
            else:
                yield SentEvent(sender, event, user)


def _limited(fields: Attributes, *names: str) -> str | None:
    return get_text(fields, *names)[:MAX_ID_CHARS] or None
