"""OTLP requests as JSON: only what we read of them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from brimline.agents.telemetry import Attributes, ScopeTelemetry
from brimline.api.schemas import Problem
from brimline.api.telemetry.records import OtlpSignal, RecordReader, Rejected
from brimline.errors import MalformedJson
from brimline.files.foreign_json import JsonDecoder

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


class _Scope(msgspec.Struct, frozen=True):
    name: str = ""


class _ScopeLogs(msgspec.Struct, frozen=True, rename="camel"):
    scope: _Scope = _Scope()
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
    scope: _Scope = _Scope()
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


_decoders: dict[OtlpSignal, JsonDecoder[Any]] = {
    "logs": JsonDecoder(ExportLogs),
    "traces": JsonDecoder(ExportTraces),
}


def decode_request(signal: OtlpSignal, body: bytes) -> Sequence[ScopeTelemetry]:
    """Return the records in a request; raises ValueError."""
    try:
        return _reader.read(signal, _decoders[signal].decode(body))
    except MalformedJson as error:
        raise ValueError(error.reason) from error


def _fields(attributes: list[_Attribute]) -> Attributes:
    values = ((each.key, each.value.plain if each.value else None) for each in attributes)
    return {key: value for key, value in values if value is not None}


_reader = RecordReader(_fields, str)


def encode_result(signal: OtlpSignal, rejected: Rejected) -> bytes:
    partial = None
    if rejected.count and signal == "logs":
        partial = PartialSuccess(rejected.count, error_message=rejected.reason)
    elif rejected.count:
        partial = PartialSuccess(rejected_spans=rejected.count, error_message=rejected.reason)
    return msgspec.json.encode(ExportResult(partial))


def encode_error(reason: str, hint: str | None) -> bytes:
    return msgspec.json.encode(Problem(reason, hint))
