"""The records in a request: JSON's structs and protobuf's messages have the same fields."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from brimline.agents.telemetry import Attributes, LogRecord, ResourceTelemetry, Span, SpanEvent
from brimline.server.telemetry.signals import Signal, read_time

ReadAttributes: TypeAlias = Callable[[Any], Attributes]


class RecordReader(msgspec.Struct, frozen=True):
    """Reads the records in a request; `fields` and `span_id` depend on its encoding."""

    fields: ReadAttributes
    span_id: Callable[[Any], str]

    def read(self, signal: Signal, request: Any) -> Sequence[ResourceTelemetry]:
        """Return the records by their resources; raises ValueError."""
        if signal == "logs":
            return [self._logs(each) for each in request.resource_logs]
        return [self._spans(each) for each in request.resource_spans]

    def _logs(self, resource: Any) -> ResourceTelemetry:
        records = (each for scope in resource.scope_logs for each in scope.log_records)
        owner = self.fields(resource.resource.attributes)
        return ResourceTelemetry(owner, logs=tuple(map(self._log, records)))

    def _spans(self, resource: Any) -> ResourceTelemetry:
        spans = (each for scope in resource.scope_spans for each in scope.spans)
        owner = self.fields(resource.resource.attributes)
        return ResourceTelemetry(owner, spans=tuple(map(self._span, spans)))

    def _log(self, record: Any) -> LogRecord:
        """A record; Codex fills in only when it was observed."""
        at = read_time(record.time_unix_nano) or read_time(record.observed_time_unix_nano)
        return LogRecord(self.fields(record.attributes), at)

    def _span(self, span: Any) -> Span:
        events = tuple(
            SpanEvent(each.name, self.fields(each.attributes), read_time(each.time_unix_nano))
            for each in span.events
        )
        return Span(
            self.span_id(span.span_id),
            self.span_id(span.parent_span_id),
            self.fields(span.attributes),
            read_time(span.end_time_unix_nano),
            events,
        )
