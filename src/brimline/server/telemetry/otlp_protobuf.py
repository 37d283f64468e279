"""OTLP requests as protobuf: only what we read of them.

The package `opentelemetry-proto` takes 0.1 s to import: that waits for the first request.
"""

from collections.abc import Iterable, Sequence

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogRecordMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from brimline.agents.telemetry import Attributes, LogRecord, ResourceTelemetry, Span, SpanEvent
from brimline.server.telemetry.signals import Rejected, Signal, read_time

MEDIA: str = "application/x-protobuf"
READ_VALUES = frozenset({"string_value", "int_value", "double_value", "bool_value"})


def decode_request(signal: Signal, body: bytes) -> Sequence[ResourceTelemetry]:
    """Return the records in a request; raises ValueError."""
    try:
        return _decode_logs(body) if signal == "logs" else _decode_traces(body)
    except DecodeError as error:
        raise ValueError(f"the body is not protobuf of OTLP: {error}") from error


def _decode_logs(body: bytes) -> Sequence[ResourceTelemetry]:
    return [
        ResourceTelemetry(
            _fields(each.resource.attributes),
            logs=tuple(_log(record) for scope in each.scope_logs for record in scope.log_records),
        )
        for each in ExportLogsServiceRequest.FromString(body).resource_logs
    ]


def _decode_traces(body: bytes) -> Sequence[ResourceTelemetry]:
    return [
        ResourceTelemetry(
            _fields(each.resource.attributes),
            spans=tuple(_span(span) for scope in each.scope_spans for span in scope.spans),
        )
        for each in ExportTraceServiceRequest.FromString(body).resource_spans
    ]


def _log(record: LogRecordMessage) -> LogRecord:
    at = read_time(record.time_unix_nano) or read_time(record.observed_time_unix_nano)
    return LogRecord(_fields(record.attributes), at)


def _span(span: SpanMessage) -> Span:
    events = tuple(
        SpanEvent(each.name, _fields(each.attributes), read_time(each.time_unix_nano))
        for each in span.events
    )
    at = read_time(span.end_time_unix_nano)
    return Span(span.span_id.hex(), span.parent_span_id.hex(), _fields(span.attributes), at, events)


def _fields(attributes: Iterable[KeyValue]) -> Attributes:
    fields: dict[str, str | int | float | bool] = {}
    for each in attributes:
        kind = each.value.WhichOneof("value")
        if kind in READ_VALUES:  # arrays and others are not read
            fields[each.key] = getattr(each.value, kind)
    return fields


def encode_result(signal: Signal, rejected: Rejected) -> bytes:
    if signal == "logs":
        logs = ExportLogsServiceResponse()
        if rejected.count:
            logs.partial_success.rejected_log_records = rejected.count
            logs.partial_success.error_message = rejected.reason
        return logs.SerializeToString()
    traces = ExportTraceServiceResponse()
    if rejected.count:
        traces.partial_success.rejected_spans = rejected.count
        traces.partial_success.error_message = rejected.reason
    return traces.SerializeToString()


def encode_error(error: str, hint: str | None) -> bytes:
    """Return a `google.rpc.Status`, which another package has: its message is field 2, too."""
    text = f"{error}. {hint}" if hint else error
    return ExportTracePartialSuccess(error_message=text).SerializeToString()
