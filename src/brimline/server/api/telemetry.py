"""OpenTelemetry in: calls of clients on which nothing but their own telemetry is set up."""

import zlib
from collections.abc import Iterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.agents import telemetry_readers
from brimline.agents.telemetry import Attributes, TelemetryEvent
from brimline.errors import InvalidUsage
from brimline.monitor.monitor import Monitor
from brimline.monitor.signal_writes import hash_id
from brimline.observations import Observation
from brimline.server.api.openapi import Endpoint
from brimline.server.api.responses import RequestRefused, json_response
from brimline.store.base import Store

MAX_UNPACKED_BYTES = 16 << 20
NANOSECONDS = 1_000_000_000
NOT_JSON = "only JSON is accepted"
JSON_HINT = "Set OTEL_EXPORTER_OTLP_PROTOCOL=http/json, or the client's setting for it."


class _Value(msgspec.Struct, frozen=True, rename="camel"):
    string_value: str | None = None
    int_value: int | str | None = None
    double_value: float | None = None
    bool_value: bool | None = None

    @property
    def plain(self) -> str | int | float | bool | None:
        """The value; arrays and others, which we do not read, are None."""
        for value in (self.string_value, self.int_value, self.double_value, self.bool_value):
            if value is not None:
                return value
        return None


class _Attribute(msgspec.Struct, frozen=True):
    key: str
    value: _Value | None = None


class _LogRecord(msgspec.Struct, frozen=True, rename="camel"):
    time_unix_nano: int | str = 0
    observed_time_unix_nano: int | str = 0
    attributes: list[_Attribute] = []

    @property
    def at(self) -> float | None:
        """When it happened; Codex fills in only when it was observed."""
        nanoseconds = int(self.time_unix_nano) or int(self.observed_time_unix_nano)
        return nanoseconds / NANOSECONDS if nanoseconds else None


class _ScopeLogs(msgspec.Struct, frozen=True, rename="camel"):
    log_records: list[_LogRecord] = []


class _Resource(msgspec.Struct, frozen=True):
    attributes: list[_Attribute] = []


class _ResourceLogs(msgspec.Struct, frozen=True, rename="camel"):
    resource: _Resource = _Resource()
    scope_logs: list[_ScopeLogs] = []


class ExportLogs(msgspec.Struct, frozen=True, rename="camel"):
    """An OTLP request with log records; only what we read of it."""

    resource_logs: list[_ResourceLogs] = []


class Exported(msgspec.Struct, frozen=True):
    """The answer to an OTLP request: empty, because all records were taken."""


_logs = msgspec.json.Decoder(ExportLogs)


class TelemetryRoutes:
    endpoints = (
        Endpoint("POST", "/v1/logs", "logs", "Take OpenTelemetry logs of clients (OTLP, JSON).",
                 Exported, ExportLogs, scope="ingest"),
        Endpoint("POST", "/v1/metrics", "metrics", "Take OpenTelemetry metrics; they are not used: "
                 "none has a call's own figures.", Exported, dict[str, Any], scope="ingest"),
    )  # fmt: skip

    def __init__(self, store: Store, monitor: Monitor) -> None:
        self._store, self._monitor = store, monitor

    async def logs(self, request: Request) -> Response:
        """Take the calls in log records; those of sessions with a transcript are known already."""
        try:
            exported = _logs.decode(await _read_json(request))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
            raise RequestRefused(400, str(error)) from error
        for agent, found in read_logs(exported):
            row = await self._store.session(found.session)
            if row is None or row.transcript is None:
                await self._observe(agent, found)
        return json_response(Exported())

    async def metrics(self, request: Request) -> Response:
        await _read_json(request)
        return json_response(Exported())

    async def _observe(self, agent: str, found: TelemetryEvent) -> None:
        at = found.event.at or self._monitor.now()
        await self._monitor.observe(
            Observation(
                id=hash_id("telemetry", found.session, found.id),
                agent=agent,
                session=found.session,
                kind="pushed",
                at=at,
                events=(found.event,),
            )
        )


def read_logs(exported: ExportLogs) -> Iterator[tuple[str, TelemetryEvent]]:
    """Yield the events in log records with their agents; records without usage are skipped."""
    for resource in exported.resource_logs:
        service = str(_fields(resource.resource.attributes).get("service.name", ""))
        readers = [(name, each) for name, each in telemetry_readers() if each.is_own(service)]
        for agent, reader in readers[:1]:
            for record in (each for scope in resource.scope_logs for each in scope.log_records):
                try:
                    found = reader.read_log(_fields(record.attributes), record.at)
                except InvalidUsage:
                    continue
                if found is not None:
                    yield agent, found


def _fields(attributes: list[_Attribute]) -> Attributes:
    values = ((each.key, each.value.plain if each.value else None) for each in attributes)
    return {key: value for key, value in values if value is not None}


async def _read_json(request: Request) -> bytes:
    """Return a body of JSON, unpacked up to a size; raises RequestRefused."""
    if "json" not in request.headers.get("content-type", ""):
        raise RequestRefused(415, NOT_JSON, JSON_HINT)
    body = await request.body()
    if request.headers.get("content-encoding", "") != "gzip":
        return body
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        unpacked = unpacker.decompress(body, MAX_UNPACKED_BYTES)
    except zlib.error as error:
        raise RequestRefused(400, f"the body is not gzip: {error}") from error
    if unpacker.unconsumed_tail:
        limit = f"{MAX_UNPACKED_BYTES >> 20} MiB"
        raise RequestRefused(413, f"the unpacked body is larger than {limit}")
    return unpacked
