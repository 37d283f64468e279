"""The records in a request: JSON's structs and protobuf's messages have the same fields."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from brimline.agents.telemetry import Attributes, LogRecord, ScopeTelemetry, SpanEvent, SpanRecord
from brimline.api.telemetry.encoding import OtlpSignal, read_time

ReadAttributes: TypeAlias = Callable[[Any], Attributes]


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
