"""OTLP requests as JSON: only what we read of them."""

from collections.abc import Sequence

import msgspec

from brimline.agents.telemetry import Attributes, LogRecord, ResourceTelemetry, Span, SpanEvent
from brimline.server.api.schemas import Problem
from brimline.server.telemetry.signals import Rejected, Signal, read_time

MEDIA: str = "application/json"


class _Value(msgspec.Struct, frozen=True, rename="camel"):
    string_value: str | None = None
    int_value: int | str | None = None
    double_value: float | None = None
    bool_value: bool | None = None

    @property
    def plain(self) -> str | int | float | bool | None:
        """The value; arrays and others, which we do not read, are None. Raises ValueError."""
        if self.int_value is not None:
            return int(self.int_value)
        for value in (self.string_value, self.double_value, self.bool_value):
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


class _ScopeLogs(msgspec.Struct, frozen=True, rename="camel"):
    log_records: list[_LogRecord] = []


class _SpanEvent(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    time_unix_nano: int | str = 0
    attributes: list[_Attribute] = []


class _Span(msgspec.Struct, frozen=True, rename="camel"):
    span_id: str = ""
    parent_span_id: str = ""
    end_time_unix_nano: int | str = 0
    attributes: list[_Attribute] = []
    events: list[_SpanEvent] = []


class _ScopeSpans(msgspec.Struct, frozen=True, rename="camel"):
    spans: list[_Span] = []


class _Resource(msgspec.Struct, frozen=True):
    attributes: list[_Attribute] = []


class _ResourceLogs(msgspec.Struct, frozen=True, rename="camel"):
    resource: _Resource = _Resource()
    scope_logs: list[_ScopeLogs] = []


class _ResourceSpans(msgspec.Struct, frozen=True, rename="camel"):
    resource: _Resource = _Resource()
    scope_spans: list[_ScopeSpans] = []


class ExportLogs(msgspec.Struct, frozen=True, rename="camel"):
    """An OTLP request with log records; only what we read of it."""

    resource_logs: list[_ResourceLogs] = []


class ExportTraces(msgspec.Struct, frozen=True, rename="camel"):
    """An OTLP request with spans; only what we read of it."""

    resource_spans: list[_ResourceSpans] = []


class PartialSuccess(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    rejected_log_records: int = 0
    rejected_spans: int = 0
    error_message: str = ""


class ExportResult(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The answer to an OTLP request: empty if no record was rejected."""

    partial_success: PartialSuccess | None = None


_logs = msgspec.json.Decoder(ExportLogs)
_traces = msgspec.json.Decoder(ExportTraces)


def decode_request(signal: Signal, body: bytes) -> Sequence[ResourceTelemetry]:
    """Return the records in a request; raises ValueError."""
    try:
        return _decode_logs(body) if signal == "logs" else _decode_traces(body)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def _decode_logs(body: bytes) -> Sequence[ResourceTelemetry]:
    return [
        ResourceTelemetry(
            _fields(each.resource.attributes),
            logs=tuple(_log(record) for scope in each.scope_logs for record in scope.log_records),
        )
        for each in _logs.decode(body).resource_logs
    ]


def _decode_traces(body: bytes) -> Sequence[ResourceTelemetry]:
    return [
        ResourceTelemetry(
            _fields(each.resource.attributes),
            spans=tuple(_span(span) for scope in each.scope_spans for span in scope.spans),
        )
        for each in _traces.decode(body).resource_spans
    ]


def _log(record: _LogRecord) -> LogRecord:
    at = read_time(record.time_unix_nano) or read_time(record.observed_time_unix_nano)
    return LogRecord(_fields(record.attributes), at)


def _span(span: _Span) -> Span:
    events = tuple(
        SpanEvent(each.name, _fields(each.attributes), read_time(each.time_unix_nano))
        for each in span.events
    )
    at = read_time(span.end_time_unix_nano)
    return Span(span.span_id, span.parent_span_id, _fields(span.attributes), at, events)


def _fields(attributes: list[_Attribute]) -> Attributes:
    values = ((each.key, each.value.plain if each.value else None) for each in attributes)
    return {key: value for key, value in values if value is not None}


def encode_result(signal: Signal, rejected: Rejected) -> bytes:
    partial = None
    if rejected.count and signal == "logs":
        partial = PartialSuccess(rejected.count, error_message=rejected.reason)
    elif rejected.count:
        partial = PartialSuccess(rejected_spans=rejected.count, error_message=rejected.reason)
    return msgspec.json.encode(ExportResult(partial))


def encode_error(error: str, hint: str | None) -> bytes:
    return msgspec.json.encode(Problem(error, hint))
