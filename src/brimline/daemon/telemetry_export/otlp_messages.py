"""Which of our figures are exported, by which names, as gauges and log records of OTLP in JSON.

docs/guides/telemetry-export.md has the names in a table, and why these. By the specification 64-bit
integers are texts, and fields are in camel case:
https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

import gzip
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from brimline._version import __version__
from brimline.context.policy.signals import SignalKind
from brimline.context.usage import ratio_of
from brimline.store.base import hash_id
from brimline.store.rows import SessionRow, SignalRow, ThreadRow

WINDOW_SIZE, UTILIZATION = "gen_ai.context.window_size", "gen_ai.context.utilization"
SENT, HELD, LIMIT = "brimline.context.sent", "brimline.context.held", "brimline.context.limit"
LIMIT_UTILIZATION = "brimline.context.limit_utilization"
CALLS_LEFT = "brimline.context.calls_left"

TOKENS, RATIO, CALLS = "{token}", "1", "{call}"  # UCUM, as in the semantic conventions
INFO, WARN = (9, "INFO"), (13, "WARN")


# Name, unit and description of each gauge.
GAUGES = (
    (WINDOW_SIZE, TOKENS, "Size of the window in tokens."),
    (UTILIZATION, RATIO, "Tokens that the last call sent, of the window."),
    (SENT, TOKENS, "Tokens that the last call sent."),
    (HELD, TOKENS, "Tokens that the next call starts with."),
    (LIMIT, TOKENS, "Tokens at which the client compacts."),
    (LIMIT_UTILIZATION, RATIO, "Tokens that the next call starts with, of the limit."),
    (CALLS_LEFT, CALLS, "Forecast of the calls until the limit."),
)

_SIGNALS: dict[SignalKind, tuple[tuple[int, str], str]] = {
    "level": (WARN, "The context reached a level."),
    "compacting": (INFO, "The client compacts the context."),
    "compacted": (INFO, "The context was compacted."),
    "cleared": (INFO, "The context was cleared."),
    "thrash": (WARN, "The context is compacted again and again."),
    "no data": (WARN, "The client's hooks report nothing."),
    "no window": (WARN, "The window is unknown: no level can be reached."),
    "disagree": (WARN, "The transcript and the client disagree."),
}

JSON_HEADERS = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
NANOSECONDS_PER_S = 1_000_000_000
EXPORT_GZIP_LEVEL = 1  # the gauges of 200 sessions: 690 KB become 27 KB; all takes 10 ms

Plain: TypeAlias = str | int | float | bool


class OtlpMessage(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    pass


class AnyValue(OtlpMessage, frozen=True):
    string_value: str | None = None
    int_value: str | None = None
    double_value: float | None = None
    bool_value: bool | None = None


class KeyValue(OtlpMessage, frozen=True):
    key: str
    value: AnyValue


class NumberDataPoint(OtlpMessage, frozen=True):
    time_unix_nano: str
    attributes: Sequence[KeyValue]
    as_int: str | None = None
    as_double: float | None = None


class Gauge(OtlpMessage, frozen=True):
    data_points: Sequence[NumberDataPoint]


class GaugeMetric(OtlpMessage, frozen=True):
    name: str
    description: str
    unit: str
    gauge: Gauge


class OtlpRecord(OtlpMessage, frozen=True):
    """A log record."""

    time_unix_nano: str
    observed_time_unix_nano: str
    severity_number: int
    severity_text: str
    body: AnyValue
    attributes: Sequence[KeyValue]
    event_name: str


class OtlpResource(OtlpMessage, frozen=True):
    attributes: Sequence[KeyValue]


class OtlpScope(OtlpMessage, frozen=True):
    name: str
    version: str


class ScopeMetrics(OtlpMessage, frozen=True):
    scope: OtlpScope
    metrics: Sequence[GaugeMetric]


class ScopeRecords(OtlpMessage, frozen=True):
    scope: OtlpScope
    log_records: Sequence[OtlpRecord]


class ResourceMetrics(OtlpMessage, frozen=True):
    resource: OtlpResource
    scope_metrics: Sequence[ScopeMetrics]


class ResourceRecords(OtlpMessage, frozen=True):
    resource: OtlpResource
    scope_logs: Sequence[ScopeRecords]


class MetricsRequest(OtlpMessage, frozen=True):
    resource_metrics: Sequence[ResourceMetrics]


class LogsRequest(OtlpMessage, frozen=True):
    resource_logs: Sequence[ResourceRecords]


_SCOPE = OtlpScope("brimline", __version__)


def encode_metrics(resource: Mapping[str, Plain | None], metrics: Sequence[GaugeMetric]) -> bytes:
    """Return the compressed body of a request to `/v1/metrics`."""
    scopes = [ScopeMetrics(_SCOPE, metrics)]
    return _compress(MetricsRequest([ResourceMetrics(OtlpResource(key_values(resource)), scopes)]))


def encode_records(resource: Mapping[str, Plain | None], records: Sequence[OtlpRecord]) -> bytes:
    """Return the compressed body of a request to `/v1/logs`."""
    scopes = [ScopeRecords(_SCOPE, records)]
    return _compress(LogsRequest([ResourceRecords(OtlpResource(key_values(resource)), scopes)]))


def key_values(attributes: Mapping[str, Plain | None]) -> list[KeyValue]:
    """Return the attributes that are known."""
    return [
        KeyValue(key, any_value(value)) for key, value in attributes.items() if value is not None
    ]


def any_value(value: Plain) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=str(value))
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=value)


def nanoseconds(at: float) -> str:
    return str(int(at * NANOSECONDS_PER_S))


def _compress(message: msgspec.Struct) -> bytes:
    return gzip.compress(msgspec.json.encode(message), EXPORT_GZIP_LEVEL, mtime=0)


def build_gauges(readings: Iterable[tuple[SessionRow, ThreadRow]], at: float) -> list[GaugeMetric]:
    """Return the gauges of readings at a time; unknown figures have no data point."""
    points: dict[str, list[NumberDataPoint]] = {name: [] for name, _, _ in GAUGES}
    time_unix_nano = nanoseconds(at)
    for session, thread in readings:
        attributes = key_values(_session_attributes(session))
        for name, value in _figures(thread).items():
            if value is not None:
                number = _number(value)
                points[name].append(NumberDataPoint(time_unix_nano, attributes, *number))
    return [
        GaugeMetric(name, description, unit, Gauge(points[name]))
        for name, unit, description in GAUGES
        if points[name]
    ]


def _figures(thread: ThreadRow) -> dict[str, int | float | None]:
    return {
        WINDOW_SIZE: thread.window,
        UTILIZATION: ratio_of(thread.percent_raw),
        SENT: thread.sent,
        HELD: thread.held,
        LIMIT: thread.limit,
        LIMIT_UTILIZATION: ratio_of(thread.percent_of_limit),
        CALLS_LEFT: thread.calls_left,
    }


def build_records(
    signals: Sequence[tuple[SignalRow, SessionRow | None]], at: float
) -> list[OtlpRecord]:
    """Return the log records of signals; their texts, which are for the agent, are left out."""
    observed = nanoseconds(at)
    return [_record(signal, row, observed) for signal, row in signals]


def _record(signal: SignalRow, row: SessionRow | None, observed: str) -> OtlpRecord:
    (severity_number, severity_text), body = _SIGNALS[signal.kind]
    attributes: dict[str, Plain | None] = {
        # The same if the signal is sent twice, because we ended before the answer came.
        "log.record.uid": _signal_id(signal),
        "gen_ai.conversation.id": signal.session,
        **(_session_attributes(row) if row else {}),
        "gen_ai.conversation.compacted": True if signal.kind == "compacted" else None,
        "brimline.signal": signal.kind,
        "brimline.level": signal.level if signal.kind == "level" else None,
        "brimline.thread": signal.thread,
        "brimline.cycle": signal.cycle,
        SENT: signal.sent,
        UTILIZATION: ratio_of(signal.percent),
    }
    return OtlpRecord(
        time_unix_nano=nanoseconds(signal.at),
        observed_time_unix_nano=observed,
        severity_number=severity_number,
        severity_text=severity_text,
        body=any_value(body),
        attributes=key_values(attributes),
        event_name=f"brimline.signal.{signal.kind.replace(' ', '_')}",
    )


def _session_attributes(row: SessionRow) -> dict[str, Plain | None]:
    return {
        "gen_ai.conversation.id": row.id,
        "gen_ai.agent.name": row.agent,
        "gen_ai.request.model": row.model,
        "host.name": row.host,
        "user.name": row.user,
        "brimline.team": row.team,
        "brimline.project": os.path.basename(row.project or "") or None,
    }


def _signal_id(signal: SignalRow) -> str:
    key = (signal.thread, signal.cycle, signal.kind, signal.level, signal.arm)
    return hash_id("signal", signal.session, *map(str, key))


def _number(value: int | float) -> tuple[str | None, float | None]:
    return (str(value), None) if isinstance(value, int) else (None, value)
