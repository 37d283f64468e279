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

from brimline.agents.telemetry import Attributes, ScopeTelemetry
from brimline.api.telemetry.records import OtlpSignal, RecordReader, Rejected

MEDIA: str = "application/x-protobuf"
READ_VALUES = frozenset({"string_value", "int_value", "double_value", "bool_value"})


def decode_request(signal: OtlpSignal, body: bytes) -> Sequence[ScopeTelemetry]:
    """Return the records in a request; raises ValueError."""
    kind = ExportLogsServiceRequest if signal == "logs" else ExportTraceServiceRequest
    try:
        return _reader.read(signal, kind.FromString(body))
    except DecodeError as error:
        raise ValueError(f"the body is not protobuf of OTLP: {error}") from error


def _fields(attributes: Iterable[KeyValue]) -> Attributes:
    fields: dict[str, str | int | float | bool] = {}
    for each in attributes:
        kind = each.value.WhichOneof("value")
        if kind in READ_VALUES:  # arrays and others are not read
            fields[each.key] = getattr(each.value, kind)
    return fields


_reader = RecordReader(_fields, bytes.hex)


def encode_result(signal: OtlpSignal, rejected: Rejected) -> bytes:
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


def encode_error(reason: str, hint: str | None) -> bytes:
    """Return a `google.rpc.Status`, which another package has: its message is field 2, too."""
    text = f"{reason}. {hint}" if hint else reason
    return ExportTracePartialSuccess(error_message=text).SerializeToString()
