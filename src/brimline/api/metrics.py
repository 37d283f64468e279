"""Metrics for Prometheus: how full the live sessions are, and what happened since the start.

They are rendered in Prometheus' text format, version 0.0.4.
"""

import os
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brimline.api.openapi import Endpoint
from brimline.api.responses import Routes
from brimline.api.schemas import DaemonStatus
from brimline.context.policy.levels import is_near_limit
from brimline.context.usage import ratio_of
from brimline.daemon.telemetry_export.exporter import LIVE_S, TelemetryOutput, is_live
from brimline.daemon.uplink.protocol import UplinkStatus
from brimline.monitor.user_rules import Rules
from brimline.store.metered import (
    BUCKETS_S,
    OTHER,
    DurationCounts,
    MeteredStore,
    UsageCounts,
)
from brimline.store.rows import SessionRow, ThreadRow

MAX_SESSIONS = 200  # with samples of their own, the fullest: every session is a new time series
SILENT_S = 86_400.0  # a machine without a report for this long counts as silent
MAX_AGENTS = 50  # with samples of their own, the most frequent: clients choose their names
FILL_BOUNDS_PERCENT = (50, 80, 90, 100)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

MetricKind: TypeAlias = Literal["counter", "gauge", "histogram"]
KeyT = TypeVar("KeyT", bound=Hashable)


class Sample(NamedTuple):
    """A value with its labels; `suffix` is that of a histogram's parts."""

    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""


class Metric(NamedTuple):
    """Samples of one name; a counter's name ends with `_total`."""

    name: str
    kind: MetricKind
    help: str
    samples: Sequence[Sample]


def histogram_samples(bounds: Sequence[float], counts: Sequence[int], total: float) -> list[Sample]:
    """Return the samples of a histogram; `counts` has one more than `bounds`, for all above."""
    samples: list[Sample] = []
    seen = 0
    for bound, count in zip([*map(str, bounds), "+Inf"], counts, strict=True):
        seen += count
        samples.append(Sample(seen, {"le": bound}, "_bucket"))
    return [*samples, Sample(total, suffix="_sum"), Sample(seen, suffix="_count")]


def render(metrics: Iterable[Metric]) -> str:
    """Return the metrics as text."""
    lines: list[str] = []
    for metric in metrics:
        lines.append(f"# HELP {metric.name} {metric.help}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        for sample in metric.samples:
            lines.append(f"{metric.name}{sample.suffix}{_format_labels(sample)} {sample.value!r}")
    return "\n".join(lines) + "\n"


def _format_labels(sample: Sample) -> str:
    pairs = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in sample.labels.items())
    return f"{{{','.join(pairs)}}}" if sample.labels else ""


class IngestCounts:
    """Requests of the scope `ingest` and their bytes since the start, by path.

    These are telemetry, events of programs and uplink batches. `pending` are being answered.
    """

    def __init__(self) -> None:
        self.requests = Counter[tuple[str, str]]()  # by path and status, as `2xx`
        self.received_bytes = Counter[str]()  # by path
        self.pending = 0


class IngestMeter:
    """A middleware that counts requests to some paths."""

    def __init__(self, app: ASGIApp, counts: IngestCounts, paths: Iterable[str]) -> None:
        self._app, self._counts, self._paths = app, counts, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
            return
        counts, path, status = self._counts, scope["path"], "5xx"

        async def count_bytes() -> Message:
            message = await receive()
            counts.received_bytes[path] += len(message.get("body", b""))
            return message

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = f"{message['status'] // 100}xx"
            await send(message)

        counts.pending += 1
        try:
            await self._app(scope, count_bytes, note_status)
        finally:
            counts.pending -= 1
            counts.requests[path, status] += 1


def ingest_paths(parts: Iterable[Routes]) -> list[str]:
    """Return the paths of the endpoints with the scope `ingest`."""
    endpoints = (each for part in parts for each in part.endpoints)
    paths = (each.path for each in endpoints if each.needed_scope == "ingest")
    return [path for path in paths if "{" not in path]  # hooks are counted apart


class MachineCounts(Protocol):
    """Counts the machines of a fleet."""

    async def count(self, silent_since: float) -> tuple[int, int]:
        """Return how many there are, and how many have not reported since a time."""
        ...


# Returns how many tokens of a fleet end soon after a time.
EndingTokens: TypeAlias = Callable[[float], Awaitable[int]]


class MetricsRoutes:
    endpoints = (
        Endpoint("GET", "/metrics", "metrics", "Get the metrics for Prometheus.", str,
                 media=CONTENT_TYPE),
    )  # fmt: skip

    def __init__(
        self,
        store: MeteredStore,
        status: Callable[[], DaemonStatus],
        ingest: IngestCounts,
        output: TelemetryOutput,
        rules: Rules,
        clock: Callable[[], float] = time.time,
        machines: MachineCounts | None = None,
        ending_tokens: EndingTokens | None = None,
    ) -> None:
        self._store, self._ingest, self._output = store, ingest, output
        self._status, self._rules, self._clock = status, rules, clock
        self._machines, self._ending_tokens = machines, ending_tokens

    async def metrics(self, request: Request) -> Response:
        now = self._clock()
        recent = await self._store.main_threads(now - LIVE_S)
        live = [(row, main) for row, main in recent if is_live(row, now)]
        pending = len(await self._store.pending_messages())
        metrics = [
            *_agent_metrics(live, self._rules),
            *_context_metrics(live),
            *self._counters(pending),
            *_ingest_metrics(self._ingest),
            *_output_metrics(self._output),
            *await self._machine_metrics(now),
        ]
        return Response(render(metrics), media_type=CONTENT_TYPE)

    async def _machine_metrics(self, now: float) -> list[Metric]:
        """Return the metrics of a fleet's machines and tokens, of which a daemon has none."""
        machines, count_ending = self._machines, self._ending_tokens
        total, silent = await machines.count(now - SILENT_S) if machines else (0, 0)
        ending = await count_ending(now) if count_ending else 0
        return [
            _single("machines", "Machines that report to this server.", total),
            _single("machines_silent", "Those without a report for a day.", silent),
            _single("tokens_ending", "Tokens that end within 14 days.", ending),
        ]

    def _counters(self, pending_messages: int) -> list[Metric]:
        counts, status = self._store.counts, self._status()
        agent = ("agent",)
        return [
            _labelled("calls_total", "Model calls.", agent, counts.calls),
            _labelled(
                "compactions_total", "Compactions.", ("agent", "trigger"), counts.compactions
            ),
            _labelled(
                "signals_total",
                "Levels and other signals that fired.",
                ("agent", "kind", "level"),
                counts.signals,
            ),
            _labelled("cache_misses_total", "Cache misses.", ("agent", "cause"), counts.misses),
            _labelled(
                "cache_miss_tokens_total",
                "Tokens that cache misses paid for again.",
                agent,
                counts.missed_tokens,
            ),
            _labelled(
                "cache_miss_dollars_total",
                "What cache misses cost more than cache reads, in USD.",
                agent,
                counts.missed_cost,
            ),
            *_usage_metrics(counts.usage),
            _labelled("messages_total", "Messages, by state.", ("state",), counts.messages),
            _single("messages_pending", "Undelivered messages.", pending_messages),
            _single("hooks_total", "Hooks and status lines received.", status.heard),
            _single("hooks_malformed_total", "Hooks that could not be read.", status.malformed),
            _single("hooks_dropped_total", "Hooks lost by a full spool.", status.dropped),
            _single("hooks_late_total", "Hooks whose input came too late.", status.late),
            _single("store_writes_pending", "Store writes under way.", counts.pending_writes),
            _durations("store_read_seconds", "Time of a store query.", counts.reads),
            _durations("store_write_seconds", "Time of a store write.", counts.writes),
            _single("start_time_seconds", "Start of the process, in Unix seconds.", status.since),
            *_uplink_metrics(status.uplink),
        ]


def _usage_metrics(usage: Mapping[tuple[str, str], UsageCounts]) -> list[Metric]:
    tokens = {
        (*group, kind): amount
        for group, counts in usage.items()
        for kind, amount in counts.tokens.items()
    }
    cost = {group: counts.cost for group, counts in usage.items()}
    return [
        _labelled("tokens_total", "Tokens of model calls.", ("team", "model", "kind"), tokens),
        _labelled("cost_dollars_total", "What model calls cost, in USD.", ("team", "model"), cost),
    ]


def _uplink_metrics(uplink: UplinkStatus | None) -> list[Metric]:
    """Return the metrics of the uplink, without samples if there is none."""
    status = uplink or UplinkStatus("")
    is_up = status.problem is None and status.last_success_at is not None
    metrics = [
        _single("uplink_up", "1 if the fleet's server took the last batch.", int(is_up)),
        _single(
            "uplink_sessions_behind", "Sessions with changes that the server lacks.", status.behind
        ),
        _single("uplink_lag_seconds", "How long the server has been behind.", status.lag_s),
        _single("uplink_batches_total", "Batches that the server took.", status.batches),
        _single("uplink_failures_total", "Failed exchanges with the server.", status.failures),
        _single("uplink_calls_total", "Calls sent to the server.", status.calls),
        _single(
            "uplink_sent_bytes_total", "Compressed bytes sent to the server.", status.sent_bytes
        ),
        _single(
            "uplink_received_total", "Messages and documents from the server.", status.received
        ),
        _single(
            "uplink_refused_total", "Messages and documents that were refused.", status.refused
        ),
        _single(
            "uplink_refused_sessions",
            "Sessions that the server does not store.",
            len(status.refused_sessions),
        ),
    ]
    return metrics if uplink else [metric._replace(samples=[]) for metric in metrics]


def _agent_metrics(live: list[tuple[SessionRow, ThreadRow]], rules: Rules) -> Iterable[Metric]:
    """Yield how many live sessions each agent has, and how full they are."""
    agents = Counter(row.agent for row, _ in live)
    shown_agents = {agent for agent, _ in agents.most_common(MAX_AGENTS)}
    fills = Counter[tuple[str, str]]()
    sessions, near = Counter[str](), Counter[str]()
    for row, main in live:
        agent = row.agent if row.agent in shown_agents else OTHER
        sessions[agent] += 1
        fullness = rules.fullness_of(main, row.id, row.agent, main.model or row.model)
        near[agent] += is_near_limit(fullness)
        fills[agent, _fill_range(main.percent_of_limit)] += 1
    yield _labelled("sessions", "Live sessions.", ("agent",), sessions)
    about = "Live sessions that have reached their last level or their limit."
    yield _labelled("sessions_near_limit", about, ("agent",), near)
    about = "Live sessions, by the percentage of the limit that their next call starts with."
    yield _labelled("sessions_by_fill", about, ("agent", "fill"), fills)


# Name, description and value of the gauges that a session has.
_CONTEXT_GAUGES: tuple[tuple[str, str, Callable[[ThreadRow], float | None]], ...] = (
    ("context_tokens", "Tokens that the last call sent.", lambda main: main.sent),
    ("context_window_tokens", "Size of the window in tokens.", lambda main: main.window),
    ("context_limit_tokens", "Tokens at which the client compacts.", lambda main: main.limit),
    (
        "context_fill_ratio",
        "Tokens that the last call sent, of the window.",
        lambda main: ratio_of(main.percent_raw),
    ),
    (
        "context_limit_fill_ratio",
        "Tokens that the next call starts with, of the limit.",
        lambda main: ratio_of(main.percent_of_limit),
    ),
    (
        "context_calls_left",
        "Forecast of the calls until the limit.",
        lambda main: main.calls_left,
    ),
)


def _context_metrics(live: list[tuple[SessionRow, ThreadRow]]) -> Iterable[Metric]:
    """Yield the figures of the fullest sessions, each with labels of its own."""
    fullest = nlargest(MAX_SESSIONS, live, key=lambda pair: pair[1].percent_of_limit or 0.0)
    labelled = [(_labels(row, main), main) for row, main in fullest]
    for name, about, value_of in _CONTEXT_GAUGES:
        samples = [
            Sample(value, labels)
            for labels, main in labelled
            if (value := value_of(main)) is not None
        ]
        yield Metric(f"brimline_{name}", "gauge", about, samples)


def _fill_range(percent: float | None) -> str:
    """Return the range of FILL_BOUNDS_PERCENT that a percentage is in, as text."""
    if percent is None:
        return "unknown"
    place = bisect_right(FILL_BOUNDS_PERCENT, percent)
    if place == len(FILL_BOUNDS_PERCENT):
        return f"{FILL_BOUNDS_PERCENT[-1]}+"
    return f"{(0, *FILL_BOUNDS_PERCENT)[place]}-{FILL_BOUNDS_PERCENT[place]}"


def _ingest_metrics(ingest: IngestCounts) -> list[Metric]:
    return [
        _labelled(
            "ingest_requests_total",
            "Ingest requests: telemetry, events, uplink batches.",
            ("path", "status"),
            ingest.requests,
        ),
        _labelled(
            "ingest_bytes_total", "Bytes of ingest requests.", ("path",), ingest.received_bytes
        ),
        _single("ingest_pending", "Ingest requests that are being answered.", ingest.pending),
    ]


def _output_metrics(output: TelemetryOutput) -> list[Metric]:
    exporter, forwarder = output.exporter, output.forwarder
    exported: dict[str, int] = {"reading": 0, "signal": 0}
    dropped: dict[str, int] = {"reading": 0, "signal": 0, "request": 0}
    if exporter is not None:
        exported |= exporter.exported
        dropped |= exporter.dropped
    if forwarder is not None:
        dropped["request"] = forwarder.dropped
    retries = exporter.retries if exporter else 0
    forwarded, waiting = (forwarder.forwarded, forwarder.waiting) if forwarder else (0, 0)
    return [
        _labelled(
            "telemetry_exported_total",
            "Readings and signals exported by OTLP.",
            ("kind",),
            exported,
        ),
        _labelled(
            "telemetry_dropped_total", "Telemetry that was not exported.", ("kind",), dropped
        ),
        _single("telemetry_retries_total", "Exports that failed and are retried.", retries),
        _single(
            "telemetry_forwarded_total", "Requests of clients forwarded to a collector.", forwarded
        ),
        _single(
            "telemetry_forward_pending", "Requests of clients that wait for the collector.", waiting
        ),
    ]


def _labels(row: SessionRow, main: ThreadRow) -> dict[str, str]:
    return {
        "session": row.id,
        "agent": row.agent,
        "host": row.host or "",
        "model": main.model or "",
        "project": os.path.basename(row.project or ""),
        "user": row.user or "",
        "team": row.team or "",
    }


def _single(name: str, about: str, value: float) -> Metric:
    return Metric(f"brimline_{name}", _kind(name), about, [Sample(value)])


def _durations(name: str, about: str, counts: DurationCounts) -> Metric:
    samples = histogram_samples(BUCKETS_S, counts.buckets, counts.total_s)
    return Metric(f"brimline_{name}", "histogram", about, samples)


def _labelled(name: str, about: str, labels: Sequence[str], values: Mapping[KeyT, float]) -> Metric:
    """Return a metric with a sample for each value; a key has as many parts as there are labels."""
    samples = [
        Sample(value, dict(zip(labels, _parts(key), strict=True))) for key, value in values.items()
    ]
    return Metric(f"brimline_{name}", _kind(name), about, samples)


def _parts(key: Hashable) -> list[str]:
    parts = cast("tuple[object, ...]", key) if isinstance(key, tuple) else (key,)
    return [f"{part:g}" if isinstance(part, float) else str(part) for part in parts]


def _kind(name: str) -> MetricKind:
    return "counter" if name.endswith("_total") else "gauge"
