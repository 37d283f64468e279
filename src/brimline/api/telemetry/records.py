"""The records in a request of OTLP, as both encodings have them: in JSON, and in protobuf."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from brimline.agents.telemetry import Attributes, LogRecord, ScopeTelemetry, SpanEvent, SpanRecord

ReadAttributes: TypeAlias = Callable[[Any], Attributes]

OtlpSignal: TypeAlias = Literal["logs", "traces"]

NANOSECONDS = 1_000_000_000
MAX_TIME = 1 << 64  # as long as protobuf's


class Rejected:
    """How many records of a request could not be used, and why the first of them could not."""

    def __init__(self) -> None:
        self.count, self.reason = 0, ""

    def add(self, reason: str) -> None:
        self.count += 1
        self.reason = self.reason or reason


def read_time(nanoseconds: int | str) -> float | None:
    """Return a time in seconds, None if it is 0; JSON has it as text. Raises ValueError."""
    value = int(nanoseconds)
    if not 0 <= value < MAX_TIME:
        raise ValueError("a time is not in nanoseconds since 1970")
    return value / NANOSECONDS if value else None


class OtlpEncoding(Protocol):
    """A module that decodes requests and encodes the answers to them."""

    MEDIA: str

    def decode_request(self, signal: OtlpSignal, body: bytes) -> Sequence[ScopeTelemetry]:
        """Return the records in a request; raises ValueError."""
        ...

    def encode_result(self, signal: OtlpSignal, rejected: Rejected) -> bytes: ...

    def encode_error(self, reason: str, hint: str | None) -> bytes: ...


class RecordReader(msgspec.Struct, frozen=True):
    """Reads the records in a request; `fields` and `span_id` depend on its encoding."""

    fields: ReadAttributes
    span_id: Callable[[Any], str]

    def read(self, signal: OtlpSignal, request: Any) -> Sequence[ScopeTelemetry]:
        """Return the records by their scopes; raises ValueError."""
        read = self._read_logs if signal == "logs" else self._read_spans
        return [*read(request)]

    def _read_logs(self, request: Any) -> Iterator[ScopeTelemetry]:
        for resource in request.resource_logs:
            owner = self.fields(resource.resource.attributes)
            for each in resource.scope_logs:
                logs = tuple(map(self._log, each.log_records))
                yield ScopeTelemetry(owner, each.scope.name, logs=logs)

    def _read_spans(self, request: Any) -> Iterator[ScopeTelemetry]:
        for resource in request.resource_spans:
            owner = self.fields(resource.resource.attributes)
            for each in resource.scope_spans:
                spans = tuple(map(self._span, each.spans))
                yield ScopeTelemetry(owner, each.scope.name, spans=spans)

    def _log(self, record: Any) -> LogRecord:
        """A record; Codex fills in only when it was observed."""
        at = read_time(record.time_unix_nano) or read_time(record.observed_time_unix_nano)
        return LogRecord(self.fields(record.attributes), at)

    def _span(self, span: Any) -> SpanRecord:
        events = tuple(
            SpanEvent(each.name, self.fields(each.attributes), read_time(each.time_unix_nano))
            for each in span.events
        )
        return SpanRecord(
            self.span_id(span.span_id),
            self.span_id(span.parent_span_id),
            self.fields(span.attributes),
            read_time(span.end_time_unix_nano),
            events,
        )
