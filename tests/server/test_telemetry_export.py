"""Readings and signals exported to a real collector on loopback: valid, once, within bounds."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from google.protobuf.json_format import Parse
from msgspec.structs import replace
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from brimline.daemon.telemetry_export.collector import Collector, CollectorBusy
from brimline.daemon.telemetry_export.exporter import CURSOR, TelemetryExporter
from brimline.store.base import PutSession, PutThread, RecordSignal
from brimline.store.rows import SessionRow, SignalRow, ThreadRow
from brimline.store.sqlite import MemoryStore
from reserved_port import ReservedPort

from .otlp_collector import RecordingCollector, recording_collector

NOW = 1_800_000_000.0
SESSION = SessionRow(
    "s1", "claude", NOW - 5, host="laptop", project="/home/ada/parser", model="claude-opus-4-6",
    title="a secret title", transcript="/home/ada/t.jsonl", user="ada", team="tools",
)  # fmt: skip
MAIN_THREAD = ThreadRow(
    "s1", "main", 0, 1, "transcript", "measured", at=NOW - 5, sent=120_000, held=121_000,
    window=200_000, limit=167_000, percent=60.0, percent_raw=60.0, percent_of_limit=72.5,
    calls_left=9,
)  # fmt: skip
LEVEL = SignalRow("s1", "main", 0, "level", NOW - 4, 50.0, "text for the agent", 120_000, 60.0)


OPENED: list[Collector] = []  # by the test that runs


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


async def filled_store(*signals: SignalRow) -> MemoryStore:
    store = MemoryStore()
    await store.write([PutSession(SESSION), PutThread(MAIN_THREAD)])
    await store.write([RecordSignal(each) for each in signals])
    return store


def make_exporter(
    store: MemoryStore, address: str, clock: Clock | None = None, **options: Any
) -> TelemetryExporter:
    collector = Collector("telemetry export", address, {"api-key": "secret"})
    OPENED.append(collector)
    return TelemetryExporter(store, collector, clock=clock or Clock(), **options)


def run(use: Callable[[], Awaitable[None]]) -> None:
    async def used() -> None:
        try:
            await use()
        finally:
            for collector in OPENED:
                collector.close()
            OPENED.clear()

    asyncio.run(used())


def plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    """The attributes of a record or a data point."""
    return {each["key"]: next(iter(each["value"].values())) for each in attributes}


def records(collector: RecordingCollector) -> list[dict[str, Any]]:
    documents = [each.document for each in collector.received if each.path == "/v1/logs"]
    resources = [resource for each in documents for resource in each["resourceLogs"]]
    scopes = [scope for each in resources for scope in each["scopeLogs"]]
    return [record for each in scopes for record in each["logRecords"]]


def gauges(collector: RecordingCollector) -> list[dict[str, Any]]:
    """For each request the values of session s1, by name."""
    found: list[dict[str, Any]] = []
    for document in (each.document for each in collector.received if each.path == "/v1/metrics"):
        (scope,) = document["resourceMetrics"][0]["scopeMetrics"]
        points = {each["name"]: each["gauge"]["dataPoints"][0] for each in scope["metrics"]}
        found.append(
            {name: each.get("asInt", each.get("asDouble")) for name, each in points.items()}
        )
    return found


def test_reading_and_signal_arrive_by_their_documented_names() -> None:
    async def use() -> None:
        exporter = make_exporter(await filled_store(LEVEL), collector.address, organisation="acme")
        await exporter.export()
        assert exporter.exported == {"reading": 1, "signal": 1}

    with recording_collector() as collector:
        run(use)
        logs, metrics = collector.received
        assert (
            logs.headers.items()
            >= {"api-key": "secret", "content-type": "application/json"}.items()
        )
        (record,) = records(collector)
        assert gauges(collector) == [
            {
                "gen_ai.context.window_size": "200000",
                "gen_ai.context.utilization": 0.6,
                "brimline.context.sent": "120000",
                "brimline.context.held": "121000",
                "brimline.context.limit": "167000",
                "brimline.context.limit_utilization": 0.725,
                "brimline.context.calls_left": "9",
            }
        ]
    session = {
        "gen_ai.conversation.id": "s1",
        "gen_ai.agent.name": "claude",
        "gen_ai.request.model": "claude-opus-4-6",
        "host.name": "laptop",
        "user.name": "ada",
        "brimline.team": "tools",
        "brimline.project": "parser",
    }
    (resource,) = metrics.document["resourceMetrics"]
    assert plain(resource["resource"]["attributes"]).items() >= {
        "service.name": "brimline", "brimline.organisation": "acme"
    }.items()  # fmt: skip
    (point,) = resource["scopeMetrics"][0]["metrics"][0]["gauge"]["dataPoints"]
    assert plain(point["attributes"]) == session
    assert point["timeUnixNano"] == "1800000000000000000"
    attributes = plain(record["attributes"])
    assert len(attributes.pop("log.record.uid")) == 32
    assert attributes == {
        **session,
        "brimline.signal": "level",
        "brimline.level": 50.0,
        "brimline.thread": "main",
        "brimline.cycle": "0",
        "brimline.context.sent": "120000",
        "gen_ai.context.utilization": 0.6,
    }
    assert (record["eventName"], record["severityText"]) == ("brimline.signal.level", "WARN")
    assert record["timeUnixNano"] == "1799999996000000000"


def test_titles_paths_and_texts_are_not_exported() -> None:
    async def use() -> None:
        await make_exporter(await filled_store(LEVEL), collector.address).export()

    with recording_collector() as collector:
        run(use)
        sent = str([each.document for each in collector.received])
    assert "parser" in sent
    for private in ("secret title", "/home/ada", "text for the agent"):
        assert private not in sent


def test_signal_is_exported_once_also_after_a_restart() -> None:
    """A new exporter on the same store goes on after the last signal that was taken."""

    async def use() -> None:
        store = await filled_store(LEVEL)
        for _ in range(2):
            await make_exporter(store, collector.address).export()
        await store.write([RecordSignal(SignalRow("s1", "main", 0, "compacted", NOW - 1))])
        exporter = make_exporter(store, collector.address)
        await exporter.export()
        await exporter.export()

    with recording_collector() as collector:
        run(use)
        found = [plain(each["attributes"]) for each in records(collector)]
    assert [each["brimline.signal"] for each in found] == ["level", "compacted"]
    assert found[1]["gen_ai.conversation.compacted"] is True
    assert "brimline.level" not in found[1]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_signal_waits_in_the_store_for_a_busy_collector(status: int) -> None:
    async def use() -> None:
        store = await filled_store(LEVEL)
        with pytest.raises(CollectorBusy, match=str(status)):
            await make_exporter(store, collector.address).export()
        assert await store.cursor(CURSOR) == 0
        await make_exporter(store, collector.address).export()
        assert await store.cursor(CURSOR) == 1

    with recording_collector(status) as collector:
        run(use)
        assert len(records(collector)) == 1


@pytest.mark.parametrize("status", [307, 400, 401, 500])
def test_refused_signal_is_dropped_and_counted(status: int) -> None:
    """Also if the collector redirects: headers have a secret for this address only."""

    async def use() -> None:
        store = await filled_store(LEVEL)
        exporter = make_exporter(store, collector.address)
        await exporter.export()
        assert exporter.dropped == {"signal": 1}
        assert exporter.exported == {"reading": 1}
        await exporter.export()

    with recording_collector(status) as collector:
        run(use)
        assert collector.paths() == ["/v1/metrics"]


def test_what_a_collector_rejects_of_a_request_is_logged_and_not_sent_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def use() -> None:
        store = await filled_store(LEVEL)
        await make_exporter(store, collector.address).export()
        await make_exporter(store, collector.address).export()

    reply = b'{"partialSuccess": {"rejectedLogRecords": "1", "errorMessage": "too old"}}'
    with recording_collector(reply=reply) as collector:
        run(use)
        assert len(records(collector)) == 1
    assert "rejected a part: too old" in caplog.text


def test_collector_that_is_down_is_tried_again() -> None:
    """Growing pauses between the tries; what waits is in the store."""
    port = ReservedPort()

    async def use() -> None:
        exporter = make_exporter(await filled_store(LEVEL), f"http://127.0.0.1:{port.number}")
        running = asyncio.create_task(exporter.run())
        while not exporter.retries:
            await asyncio.sleep(0.01)
        with recording_collector(port=port.number) as collector:
            while exporter.exported["reading"] == 0:
                await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert len(records(collector)) == 1

    run(use)


def test_signal_that_a_slow_collector_gets_twice_has_one_id() -> None:
    """Its first answer came too late: backends can recognise the copy."""

    async def use() -> None:
        store = await filled_store(LEVEL)
        slow = Collector("telemetry export", collector.address, {}, timeout_s=0.1)
        OPENED.append(slow)
        collector.gate.clear()
        with pytest.raises(CollectorBusy, match="no answer within"):
            await TelemetryExporter(store, slow, clock=Clock()).export()
        assert await store.cursor(CURSOR) == 0
        collector.gate.set()
        await make_exporter(store, collector.address).export()

    with recording_collector() as collector:
        run(use)
        collector.until(lambda: len(records(collector)) == 2)
        first, second = (plain(each["attributes"]) for each in records(collector))
    assert first["log.record.uid"] == second["log.record.uid"]


def test_exported_json_is_valid_by_the_protocol_of_opentelemetry() -> None:
    """Its own package reads every field, and has no others."""

    async def use() -> None:
        await make_exporter(
            await filled_store(LEVEL, replace(LEVEL, kind="compacted", level=0.0)),
            collector.address,
        ).export()

    with recording_collector() as collector:
        run(use)
        logs, metrics = (json.dumps(each.document) for each in collector.received)
    parsed_logs: Any = Parse(logs, ExportLogsServiceRequest())
    parsed_metrics: Any = Parse(metrics, ExportMetricsServiceRequest())
    for record in parsed_logs.resource_logs[0].scope_logs[0].log_records:
        assert record.time_unix_nano == (NOW - 4) * 1e9
        assert record.event_name.startswith("brimline.signal.")
        assert record.severity_number in (9, 13)
    points = {
        metric.name: metric.gauge.data_points[0]
        for metric in parsed_metrics.resource_metrics[0].scope_metrics[0].metrics
    }
    assert points["gen_ai.context.window_size"].as_int == 200_000
    assert points["gen_ai.context.utilization"].as_double == 0.6


def test_old_signals_are_not_exported() -> None:
    """Those from before the first export are no loss; those of an outage of days are counted."""

    async def use() -> None:
        old = SignalRow("s1", "main", 0, "compacted", NOW - 90_000)
        store = await filled_store(old, LEVEL)
        exporter = make_exporter(store, collector.address)
        await exporter.export()
        assert exporter.dropped == {}
        await store.write([RecordSignal(replace(old, cycle=1))])
        await exporter.export()
        assert exporter.dropped == {"signal": 1}

    with recording_collector() as collector:
        run(use)
        assert len(records(collector)) == 1


def test_unchanged_reading_is_repeated_each_minute_while_its_session_is_live() -> None:
    clock = Clock()

    async def use() -> None:
        store = await filled_store()
        exporter = make_exporter(store, collector.address, clock)
        await exporter.export()
        clock.now += 30
        await exporter.export()
        assert len(gauges(collector)) == 1
        changed = ThreadRow("s1", "main", 0, 2, "hook", "measured", sent=1, window=None)
        await store.write([PutThread(changed)])
        await exporter.export()
        assert gauges(collector)[1:] == [{"brimline.context.sent": "1"}]
        clock.now += 30
        await exporter.export()
        assert len(gauges(collector)) == 3
        await store.write([PutSession(SessionRow("s1", "claude", NOW, ended_at=NOW))])
        clock.now += 60
        await exporter.export()
        assert len(gauges(collector)) == 3

    with recording_collector() as collector:
        run(use)


def test_many_signals_and_readings_are_sent_in_batches() -> None:
    async def use() -> None:
        store = await filled_store()
        rows = [SessionRow(f"m{number}", "codex", NOW) for number in range(600)]
        await store.write([PutSession(row) for row in rows])
        threads = [ThreadRow(row.id, "main", 0, 1, "hook", "measured", sent=5) for row in rows]
        await store.write([PutThread(row) for row in threads])
        signals = [SignalRow(row.id, "main", 0, "thrash", NOW) for row in rows]
        await store.write([RecordSignal(row) for row in signals])
        exporter = make_exporter(store, collector.address)
        await exporter.export()
        assert exporter.exported == {"reading": 601, "signal": 600}

    with recording_collector() as collector:
        run(use)
        assert collector.paths() == ["/v1/logs"] * 2 + ["/v1/metrics"] * 4
        assert len(records(collector)) == 600


def test_process_that_is_not_elected_exports_nothing() -> None:
    votes: list[bool] = []

    async def is_elected() -> bool:
        votes.append(len(votes) == 2)
        return votes[-1]

    async def use() -> None:
        exporter = make_exporter(
            await filled_store(LEVEL), collector.address, is_elected=is_elected, interval_s=0.01
        )
        running = asyncio.create_task(exporter.run())
        while len(votes) < 5:
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    with recording_collector() as collector:
        run(use)
        assert collector.paths() == ["/v1/logs", "/v1/metrics"]
