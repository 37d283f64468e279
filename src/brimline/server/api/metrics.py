"""Metrics for Prometheus: how full the live sessions are, and what happened since the start."""

import os
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

from starlette.requests import Request
from starlette.responses import Response

from brimline.events import MAIN
from brimline.monitor.monitor import Monitor
from brimline.server.api.openapi import Endpoint
from brimline.server.api.schemas import DaemonStatus
from brimline.server.prometheus_text import (
    CONTENT_TYPE,
    Metric,
    MetricKind,
    Sample,
    histogram_samples,
    render,
)
from brimline.store.metered import BUCKETS_S, MeteredStore
from brimline.store.rows import SessionRow, ThreadRow
from brimline.uplink.status import UplinkStatus

LIVE_S = 3_600.0  # a session that was seen within this time is live
MAX_SESSIONS = 200  # with samples of their own, the fullest: every session is a new time series
NEAR_LIMIT_PERCENT = 80.0

KeyT = TypeVar("KeyT", bound=Hashable)


class MetricsRoutes:
    endpoints = (
        Endpoint("GET", "/metrics", "metrics", "Get the metrics for Prometheus.", str,
                 media=CONTENT_TYPE),
    )  # fmt: skip

    def __init__(
        self,
        store: MeteredStore,
        monitor: Monitor,
        status: Callable[[], DaemonStatus],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._monitor = store, monitor
        self._status, self._clock = status, clock

    async def metrics(self, request: Request) -> Response:
        now = self._clock()
        rows = [row for row in await self._store.sessions() if _is_live(row, now)]
        threads = {row.session: row for row in await self._store.threads() if row.thread == MAIN}
        pending = len(await self._store.pending_messages())
        live = [(row, threads[row.id]) for row in rows if row.id in threads]
        metrics = [*self._session_metrics(live), *self._counters(pending)]
        return Response(render(metrics), media_type=CONTENT_TYPE)

    def _session_metrics(self, live: list[tuple[SessionRow, ThreadRow]]) -> Iterable[Metric]:
        agents = Counter(row.agent for row, _ in live)
        near = Counter(
            row.agent for row, main in live if (main.percent_of_limit or 0.0) >= NEAR_LIMIT_PERCENT
        )
        yield _labelled("sessions", "Live sessions.", ("agent",), agents)
        about = f"Live sessions at {NEAR_LIMIT_PERCENT:g} % of their limit or more."
        near_by_agent = {agent: near[agent] for agent in agents}
        yield _labelled("sessions_near_limit", about, ("agent",), near_by_agent)
        live = sorted(live, key=lambda pair: pair[1].percent_of_limit or 0.0, reverse=True)
        shown = [(_labels(row, main), row, main) for row, main in live[:MAX_SESSIONS]]
        figures: list[tuple[str, str, Callable[[SessionRow, ThreadRow], float | None]]] = [
            ("context_tokens", "What the last call sent.", lambda _, main: main.sent),
            ("context_window_tokens", "The size of the window.", lambda _, main: main.window),
            ("context_limit_tokens", "Where the client compacts.", lambda _, main: main.limit),
            (
                "context_fill_ratio",
                "What the last call sent, of the window.",
                lambda _, main: _ratio(main.percent_raw),
            ),
            (
                "context_limit_fill_ratio",
                "What the next call starts with, of the limit.",
                lambda _, main: _ratio(main.percent_of_limit),
            ),
            ("context_calls_left", "A forecast until the limit.", self._calls_left),
        ]
        for name, about, figure in figures:
            samples = [
                Sample(value, labels)
                for labels, row, main in shown
                if (value := figure(row, main)) is not None
            ]
            yield Metric(f"brimline_{name}", "gauge", about, samples)

    def _calls_left(self, row: SessionRow, main: ThreadRow) -> float | None:
        left = self._monitor.calls_left(row.id)
        return left.calls if left else None

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
                "Tokens that were paid for again.",
                agent,
                counts.missed_tokens,
            ),
            _labelled(
                "cache_miss_dollars_total",
                "What they cost more than as cache reads.",
                agent,
                counts.missed_cost,
            ),
            _labelled("messages_total", "Messages, by state.", ("state",), counts.messages),
            _single("messages_pending", "Undelivered messages.", pending_messages),
            _single("hooks_total", "Hooks and status lines.", status.heard),
            _single("hooks_malformed_total", "Hooks that could not be read.", status.malformed),
            _single("hooks_dropped_total", "Hooks lost by a full spool.", status.dropped),
            _single("store_writes_pending", "Writes under way.", counts.pending_writes),
            Metric(
                "brimline_store_write_seconds",
                "histogram",
                "The time of a write.",
                histogram_samples(BUCKETS_S, counts.write_buckets, counts.write_seconds),
            ),
            _single("start_time_seconds", "The start of the daemon.", status.since),
            *(_uplink_metrics(status.uplink) if status.uplink else ()),
        ]


def _uplink_metrics(uplink: UplinkStatus) -> Iterable[Metric]:
    is_up = uplink.problem is None and uplink.last_success_at is not None
    yield _single("uplink_up", "1 if the server took the last batch.", int(is_up))
    yield _single("uplink_sessions_behind", "Sessions with unsent changes.", uplink.behind)
    yield _single("uplink_lag_seconds", "How long the server has been behind.", uplink.lag_s)
    yield _single("uplink_batches_total", "Batches that were taken.", uplink.batches)
    yield _single("uplink_failures_total", "Failed exchanges.", uplink.failures)
    yield _single("uplink_calls_total", "Calls that were sent.", uplink.calls)
    yield _single("uplink_sent_bytes_total", "Compressed bytes that were sent.", uplink.sent_bytes)
    yield _single("uplink_received_total", "Messages and documents received.", uplink.received)


def _is_live(row: SessionRow, now: float) -> bool:
    return not row.has_ended and now - row.seen_at <= LIVE_S


def _labels(row: SessionRow, main: ThreadRow) -> dict[str, str]:
    return {
        "session": row.id,
        "agent": row.agent,
        "host": row.host or "",
        "model": main.model or "",
        "project": os.path.basename(row.project or ""),
    }


def _ratio(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _single(name: str, about: str, value: float) -> Metric:
    return Metric(f"brimline_{name}", _kind(name), about, [Sample(value)])


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
